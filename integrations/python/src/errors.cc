#include "errors.h"

namespace nb = nanobind;

namespace tutti::python {

void raise(tuttiResult_t code, const std::string& text) {
  const nb::object error = nb::module_::import_("tutti._errors").attr("error_of")(static_cast<int>(code), text.c_str());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

std::string textOf(tuttiResult_t result, tuttiComm_t comm) {
  std::string text = tuttiGetLastError(comm);
  if (text.empty()) text = tuttiGetLastError(nullptr);
  return text.empty() ? tuttiGetErrorString(result) : text;
}

void check(tuttiResult_t result, tuttiComm_t comm) {
  if (result != tuttiSuccess) raise(result, textOf(result, comm));
}

}  // namespace tutti::python
