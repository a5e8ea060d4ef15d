"""The strategy that tutti takes the place of reaches the same losses."""
import re
import unittest

import jobs
import workers


class Reference(unittest.TestCase):
    def losses(self, name, **options):
        done = workers.run(2, jobs.RANKS / "strategy.py", name, **options)
        self.assertEqual([each.status for each in done], [0, 0], workers.shown(done))
        found = [re.search(r"losses of 2: (.*)", each.output)[1] for each in done]
        self.assertEqual(found[0], found[1])
        print(f"{name}: {found[0]}")
        return [float(each) for each in found[0].split()]

    def test_multi_worker_mirrored_strategy(self):
        theirs, ours = self.losses("own", listening=True), self.losses("tutti")
        for one, other in zip(theirs, ours):
            self.assertAlmostEqual(one, other, delta=2e-6)  # means of 8 losses, rounded to float32 (2^-23 of numbers below 4)


if __name__ == "__main__":
    jobs.main()
