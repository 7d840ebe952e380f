// The contract of fabric/fabric.h as one test suite that every provider passes.
#pragma once

#include "testing/fabric_contract/connecting.h"
#include "testing/fabric_contract/ending.h"
#include "testing/fabric_contract/memory.h"
#include "testing/fabric_contract/messages.h"
