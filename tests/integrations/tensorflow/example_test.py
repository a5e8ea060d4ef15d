"""The example, as a reader starts it: by TF_CONFIG, and alone."""
import re
import tempfile
import unittest
import zipfile
from pathlib import Path

import jobs
import workers

EXAMPLE = Path(jobs.HERE, "../../examples/keras_digits.py").resolve()
LINE = re.compile(r"(\d) workers: loss ([\d.]+), validation loss ([\d.]+), accuracy ([\d.]+)")
# Alone, and then with what the two workers have saved.
ALONE = """
import runpy, sys
import keras
from sklearn.datasets import load_digits
checkpoint = sys.argv.pop()
runpy.run_path(sys.argv.pop(1), run_name="__main__")
x, y = load_digits(return_X_y=True)
right = keras.models.load_model(checkpoint).predict(x.astype("float32") / 16, verbose=0).argmax(axis=1) == y
print(f"right: {right.mean():.3f}")
"""


class Example(unittest.TestCase):
    def figures(self, output):
        found = LINE.search(output)
        self.assertIsNotNone(found, output)
        print(found[0])
        return [float(each) for each in found.groups()]

    def test_two_workers_reach_what_one_does(self):
        with tempfile.TemporaryDirectory() as folder:
            alone, saved = Path(folder, "alone.py"), Path(folder, "two.keras")
            done = workers.run(2, EXAMPLE, "--checkpoint", str(saved))
            self.assertEqual([each.status for each in done], [0, 0], workers.shown(done))
            with zipfile.ZipFile(saved) as file:
                self.assertNotIn(b"tutti", file.read("config.json"))  # it is anybody's
            alone.write_text(ALONE, encoding="utf-8")
            one = workers.alone(alone, str(EXAMPLE), "--checkpoint", f"{folder}/one.keras", str(saved)).output
        self.compare(self.figures(done[0].output), self.figures(one))
        self.assertGreater(float(one.split("right: ")[1]), 0.9, one)

    def compare(self, two, one):
        """One sample in 1438 is left out where two workers share 1437: the losses agree in their first digits."""
        self.assertEqual((two[0], one[0]), (2, 1))
        self.assertAlmostEqual(two[1], one[1], delta=0.01)
        self.assertAlmostEqual(two[2], one[2], delta=0.01)
        self.assertGreater(two[3], 0.9)


if __name__ == "__main__":
    jobs.main()
