// What the log says of variables that are set in vain. For one rank of a job to call: the others would say the same.
#pragma once

namespace tutti::settings {

// Warns of TUTTI_* variables that are no settings, and of a TUTTI_DEBUG that means nothing, the first time it is called
// in a process.
void warnOfStrangeSettings();

// Tells that NCCL's variables are not read, the first time it is called in a process. As a warning, because someone who
// sets NCCL_DEBUG=INFO and does not know our names would never see less; as information where TUTTI_DEBUG is set, with
// which a job that has such variables for another library's sake is kept quiet.
void tellForeignNames();

}  // namespace tutti::settings
