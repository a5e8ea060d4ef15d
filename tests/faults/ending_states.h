// The states in which a process may end, fork, or unload the library; and what the module of that name exports.
#pragma once

struct EndingState {
  const char* name;
  bool callers;  // threads of the module's own are in a call: nobody may unload that
  bool links;    // there are links, or they are being made: over each transport it is another state
};

inline constexpr EndingState kEndingStates[] = {{"idle", false, false},
                                                {"joining in the background", false, false},
                                                {"joining where the id file does not come", false, false},
                                                {"joining", true, false},
                                                {"waiting for a link", true, true},
                                                {"at rest after a call", false, true},
                                                {"waiting", true, true},
                                                {"running", true, true},
                                                {"waiting in a stream", false, true},
                                                {"at work in streams on what a static object frees", true, true},
                                                {"splitting", true, true},
                                                {"failed", false, true},
                                                {"shrinking", true, true},
                                                {"splitting in the background", false, true},
                                                {"shrinking in the background", false, true},
                                                {"in a group", false, true},
                                                {"ending a group", true, true},
                                                {"destroyed", false, true},
                                                {"held by a static object", false, true}};

// Brings this process into one of them; both ranks of each communicator are its own. Never blocks for long. False:
// there is no such state.
extern "C" __attribute__((visibility("default"))) bool enterState(const char* name);
// Makes and uses a communicator. What is wrong, or nullptr.
extern "C" __attribute__((visibility("default"))) const char* tryLibrary();
