// Metrics: statistics and gauges as families of Prometheus, by its rules for names and units
// (docs/observability.md lists them). Labels have few values: programs, procedures, statuses,
// exports and reasons, never clients.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "cli/observe/gauges.h"
#include "cli/observe/observation.h"

namespace stag::cli {

std::vector<prometheus::MetricFamily> to_metrics(const Observation& observation,
                                                 const Gauges& gauges);

}  // namespace stag::cli
