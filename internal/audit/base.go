package audit

import (
	"strings"

	"runloop.dev/rlp/caps"
)

// ByBase reports whether a denial is for the agent's own policy alone, which does
// not hold what was asked. A denial without a layer is not always that: a rate, a
// budget, an address that nobody may reach or what is not there is no layer's vote.
func ByBase(layer, reason string) bool {
	switch {
	case layer != "":
		return layer == "base"
	case reason == caps.CapMissing.String(), reason == caps.NotInBase.String(), reason == caps.CapsEmpty.String():
		return true
	}
	return strings.HasSuffix(reason, "_not_permitted") && reason != caps.AddressNotPermitted.String()
}
