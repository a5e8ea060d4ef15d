// The colours of pictures, on a light page, and on a dark one where the reader's is dark.
#pragma once

namespace tutti::drawing {

// Rings take turns with the colours .r0 to .r7: Okabe and Ito's and some of Tol's, which remain apart for the
// colour-blind.
inline constexpr int kRingColours = 8;

inline constexpr const char* kStyle = R"(
text{fill:#1f2328}
.title{font-size:16px;font-weight:bold}
.name{font-weight:bold}
.small{font-size:10px;fill:#4a525b}
.on{font-size:9.5px}
.plate{fill:#f6f8fa}
path{fill:none;stroke:#7d8590;stroke-linejoin:round;stroke-linecap:round}
.page{fill:#ffffff}
.host{fill:#f6f8fa;stroke:#8b949e}
.panel{fill:#eaeff5;stroke:#b6c2cf}
.numa{fill:#cfdcea;stroke:#6f8aa6}
.switch{fill:#fbf0cf;stroke:#a98a35}
.gpu{fill:#d7efd7;stroke:#3f8f3f}
.nic{fill:#e5def5;stroke:#7763b3}
.sockets{fill:#cfdcea;stroke:#6f8aa6}
.fabric{fill:#dcf0ea;stroke:#2c8a6c}
.nvswitch{fill:#b9e0d2;stroke:#2c8a6c}
.pci{stroke-width:1.5px}
.peer{stroke-width:1.5px;stroke-dasharray:5 4}
.nvlink{stroke:#35a07f}
.ring{stroke-width:2.5px}
.r0{stroke:#0072b2}.r1{stroke:#d55e00}.r2{stroke:#b3478a}.r3{stroke:#c98a00}
.r4{stroke:#3a9bd0}.r5{stroke:#882255}.r6{stroke:#7d7d20}.r7{stroke:#5d4fb0}
@media (prefers-color-scheme: dark){
text{fill:#e6edf3}
.small{fill:#b6c0ca}
.plate{fill:#161b22}
path{stroke:#8b949e}
.page{fill:#0d1117}
.host{fill:#161b22;stroke:#6e7681}
.panel{fill:#1c2430;stroke:#3d4a5a}
.numa,.sockets{fill:#26384d;stroke:#6f8aa6}
.switch{fill:#43381a;stroke:#a98a35}
.gpu{fill:#1d3d22;stroke:#4fa55a}
.nic{fill:#322a4d;stroke:#8f7cd0}
.fabric{fill:#142e27;stroke:#2c8a6c}
.nvswitch{fill:#1e4a3d;stroke:#45ab8a}
.nvlink{stroke:#45ab8a}
.r0{stroke:#4aa8e6}.r1{stroke:#ff8a3d}.r2{stroke:#e38ac2}.r3{stroke:#f2bd4a}
.r4{stroke:#9bd6f7}.r5{stroke:#d96c9f}.r6{stroke:#c9c95c}.r7{stroke:#a79bf0}
}
)";

}  // namespace tutti::drawing
