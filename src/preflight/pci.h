// What the PCI bus and its IOMMU do to packets between a NIC and a GPU.
#pragma once
#include "detect/sysfs.h"
#include "preflight/host_report.h"

namespace tutti::preflight {

// Of the RDMA devices and the NVIDIA GPUs: kTranslates where one of them is translated.
IommuMode iommuMode(const detect::Sysfs& sysfs);
// Bridges that send what devices below them tell each other up to the processor (ACS); -1 where the bridges' registers
// cannot be read, which takes root.
int acsRedirects(const detect::Sysfs& sysfs);
int nvidiaGpus(const detect::Sysfs& sysfs);

}  // namespace tutti::preflight
