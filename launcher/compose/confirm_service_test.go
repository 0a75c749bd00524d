package compose

import (
	"strings"
	"testing"

	"runloop.dev/rlp/hostcalls"
)

// Nobody sits at the terminal of a service: what would be asked there is refused,
// and the reason says so.
func TestNobodyIsAskedBehindAService(t *testing.T) {
	confirms := func(how string) hostcalls.Confirm {
		c := &Composition{Origin: Origin{Surface: FromMCP}}
		c.Config.Security.Confirm = how
		return (&Runner{}).confirm(c, "agent")
	}
	if yes, why := confirms("ask")(t.Context(), hostcalls.Question{}); yes || !strings.Contains(why, "behind a service") {
		t.Errorf("%v %q", yes, why)
	}
	if yes, _ := confirms("allow")(t.Context(), hostcalls.Question{}); !yes {
		t.Error("control: what the operator allows is refused")
	}
}
