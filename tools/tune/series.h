// What a sweep measured, as a profile has it.
#pragma once
#include "plan/measured.h"
#include "tune/model.h"

namespace tutti::tune {

// By what `model` says of the barriers in it.
plan::Measurements measurementsOf(const Sweep& sweep, const Model& model);

}  // namespace tutti::tune
