// The operations of a communicator, as Python's methods.
#pragma once
#include "communicator.h"

namespace tutti::python {

void defineCollectives(nanobind::class_<Communicator>& type);

}  // namespace tutti::python
