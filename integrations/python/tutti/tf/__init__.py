"""TensorFlow and Keras on tutti: data-parallel training on host memory, model.fit unchanged.

    import keras, tutti, tutti.tf
    comm = tutti.init()                                         # who this process is, TF_CONFIG says
    x, y = tutti.tf.shard((x, y))                               # this rank's part of the data
    model.compile(tutti.tf.distribute_optimizer("adam"), loss)  # gradients are averaged over the ranks
    model.fit(x, y, batch_size=64 // comm.size, callbacks=[tutti.tf.Broadcast(), tutti.tf.AverageMetrics()])

Needs TensorFlow 2.16 or newer with its Keras 3, and imports them; the package tutti itself does not. Everything takes a
communicator as `comm`, and that of tutti.init() where none is given. All ranks make the same calls in the same order,
with the same model. There is no tf.distribute strategy and no server of TensorFlow's in this.

In a compiled step an error of tutti arrives as an error of TensorFlow (tf.errors.OpError), which quotes the text;
comm.error has it as well. Outside of one it is the exception of tutti. """
from tutti.tf import _requirements as _requirements  # isort: skip  (says what is missing, before others miss it)
from tutti.tf._callbacks import AverageMetrics, AverageStatistics, Broadcast
from tutti.tf._data import shard
from tutti.tf._gradients import allreduce_grads
from tutti.tf._optimizer import distribute_optimizer
from tutti.tf._variables import average_variables, broadcast_variables

__all__ = [
    "AverageMetrics", "AverageStatistics", "Broadcast", "allreduce_grads", "average_variables", "broadcast_variables",
    "distribute_optimizer", "shard",
]
