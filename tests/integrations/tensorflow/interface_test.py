"""What tutti.tf takes, gives and refuses."""
import subprocess
import sys
import tempfile
import unittest

import jobs
import workers


class Interface(workers.WorkersTest):
    def test_two_workers(self):
        with tempfile.TemporaryDirectory() as folder:
            self.workers_do(2, "interface.py", FOLDER=folder)


class Alone(unittest.TestCase):
    def outcome(self, code, **variables):
        return subprocess.run([sys.executable, "-c", code], env=jobs.clean_environment(**variables), capture_output=True,
                              text=True, timeout=workers.SECONDS, check=False)

    def test_without_tensorflow(self):
        done = self.outcome("import sys; sys.modules['tensorflow'] = None\nimport tutti; print('there'); import tutti.tf")
        self.assertEqual(done.stdout, "there\n")
        self.assertIn("ImportError: tutti.tf needs TensorFlow, and ", done.stderr)
        self.assertIn("has no module tensorflow: pip install tensorflow-cpu", done.stderr)

    def test_the_package_itself_does_not_import_it(self):
        done = self.outcome("import sys, tutti; print('tensorflow' in sys.modules)")
        self.assertEqual(done.stdout, "False\n", done.stderr)

    def test_another_backend_of_keras(self):
        done = self.outcome("import keras; keras.backend.backend = lambda: 'torch'; import tutti.tf", **workers.QUIET)
        self.assertIn("ImportError: tutti.tf needs Keras on TensorFlow, and this Keras runs on torch", done.stderr)


if __name__ == "__main__":
    jobs.main()
