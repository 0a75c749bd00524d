package hostcalls

import (
	"fmt"
	"testing"

	"runloop.dev/rlp/hostcalls/budget"
)

// A person who said no to a run said it to those that it launches, and to those
// that launched it: nobody is asked again by another name.
func TestANoHoldsForTheWholeTree(t *testing.T) {
	tool := grepTool()
	tool.Confirm = true
	ask := &asker{}
	above, _ := toolRig(t, tool, grepGrants...)
	below, f := toolRig(t, tool, grepGrants...)
	above.host.cfg.Confirm, below.host.cfg.Confirm = ask.confirm, ask.confirm
	below.host.budget = budget.New(below.host.cfg.Limits, above.host.budget)
	for i := range 2 * maxNoes {
		below.use("count", fmt.Sprintf(`{"a":%d}`, i))
		above.use("count", fmt.Sprintf(`{"a":%d}`, i))
	}
	if len(ask.asked) != maxNoes || len(f.ran) != 0 {
		t.Errorf("asked %d times", len(ask.asked))
	}
}

// A person who is asked about a program sees where its words end, and what
// variables it is given.
func TestAQuestionShowsAProgramWhole(t *testing.T) {
	ask := &asker{}
	r, _ := toolRig(t, grepTool(), append(grepGrants, "env:read:LANG")...)
	r.host.cfg.Confirm, r.host.cfg.ConfirmExternal = ask.confirm, true
	r.call(execRunName, `{"argv":["/bin/grep","-e","a b","","--x=\"y"],"env":{"LANG":"C x"}}`, "")
	if want := `LANG="C x" /bin/grep -e "a b" "" "--x=\"y"`; len(ask.asked) != 1 || ask.asked[0].Target != want {
		t.Errorf("asked %+v, want %s", ask.asked, want)
	}
}
