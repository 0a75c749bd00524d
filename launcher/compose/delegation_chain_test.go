package compose

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/launcher/run"
)

// chainWords are what the agents of a chain ask for, by the line of a policy, and
// what profiles leave.
var chainWords = [][2]string{
	{`time = true`, "time:read:*"},
	{`kb_read = ["notes"]`, "kb:read:notes"},
	{`kb_write = ["notes"]`, "kb:write:notes"},
	{`net = ["a.example"]`, "network:https:a.example"},
	{`model = true`, "model:use:local:echo"},
	{`env = ["PATH"]`, "env:read:PATH"},
	{`agents = ["c1", "c2", "c3"]`, "agents:launch:c2"},
}

// Through the files that an operator writes, whatever floors and bindings there
// are, good, broken and missing ones, no run of a chain holds what the run that
// launched it does not hold.
//
//rlp:holds P18
func TestAChainOfDelegatesOnlyNarrows(t *testing.T) {
	chains := 40
	if testing.Short() {
		chains = 5
	}
	wider, floors, held := 0, 0, 0
	for seed := range chains {
		rng := rand.New(rand.NewPCG(uint64(seed), 18))
		home, out := filepath.Join(t.TempDir(), "home"), t.TempDir()
		a := readerOf(home)
		a.Env = []string{"HOME=" + out}
		deny := someDelegation(t, home, rng)
		var above caps.Set
		var parent *Composition
		for depth := range 4 {
			name := fmt.Sprintf("c%d", depth)
			dir := agentAt(t, out, name, someLines(rng))
			alone := chainPlan(t, a, Origin{}, dir)
			if depth == 0 {
				above, parent = alone.Effective, &Composition{}
				continue
			}
			by := Origin{Surface: fromRun, parent: run.Parent{Delegation: &hostcalls.Delegation{
				Agent:  name,
				Within: above.Layer("held"),
			}}, from: parent}
			plan := chainPlan(t, a, by, dir)
			for _, words := range chainWords {
				word := words[1]
				list, err := caps.ParseRequest(word)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range list {
					got := plan.Effective.Check(r)
					switch {
					case got.Allow && !above.Check(r).Allow:
						t.Fatalf("chain %d, depth %d: %s is held, and its parent holds %s", seed, depth, word, above)
					case got.Allow && !alone.Effective.Check(r).Allow:
						t.Fatalf("chain %d, depth %d: %s is held, and its own files leave %s", seed, depth, word, alone.Effective)
					case alone.Effective.Check(r).Allow && !above.Check(r).Allow:
						wider++
					case got.Code == caps.DelegateFloor:
						floors++
					case got.Allow:
						held++
					}
				}
			}
			if deny[name] && plan.Effective.Any(caps.KBWrite) {
				t.Fatalf("chain %d, depth %d: %s is bound to nothing and writes", seed, depth, name)
			}
			above = plan.Effective
		}
	}
	if wider == 0 || floors == 0 || held == 0 {
		t.Errorf("control: %d requests of children beyond their parents, %d taken by floors, %d held: the chains test nothing", wider, floors, held)
	}
}

// someDelegation writes settings of delegation and the profiles that they name.
// It returns the agents that the built-in floor holds.
func someDelegation(t *testing.T, home string, rng *rand.Rand) map[string]bool {
	floored := map[string]bool{}
	strict := rng.IntN(2) == 0
	text := "[delegation]\ncapability_default = \"inherit\"\n[delegation.bindings]\n"
	if strict {
		text = "[delegation]\ncapability_default = \"deny\"\n[delegation.bindings]\n"
	}
	for _, name := range []string{"c1", "c2", "c3"} {
		switch rng.IntN(4) {
		case 0:
			floored[name] = strict
		case 1:
			text += name + " = \"missing\"\n"
			floored[name] = true
		case 2:
			text += name + " = \"broken\"\n"
			floored[name] = true
		case 3:
			text += name + " = \"bound-" + name + "\"\n"
			writeFile(t, filepath.Join(home, "caps", "profiles", "bound-"+name+".toml"), "[capabilities]\n"+someLines(rng)+
				"secrets = []\n")
		}
	}
	writeFile(t, filepath.Join(home, "caps", "profiles", "broken.toml"), "[capabilities]\nkb_writ = []\n")
	writeFile(t, filepath.Join(home, "config.toml"), text)
	return floored
}

// someLines are some lines of a policy.
func someLines(rng *rand.Rand) string {
	var b strings.Builder
	for _, words := range chainWords {
		if rng.IntN(3) > 0 {
			b.WriteString(words[0] + "\n")
		}
	}
	return b.String()
}

// chainPlan is the plan of an agent that by launches, or the operator.
func chainPlan(t *testing.T, a *Reader, by Origin, dir string) run.Plan {
	t.Helper()
	c, err := a.Complete(&Composition{Path: dir, Origin: by}, Flags{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := run.NewPlan(c.Policy)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
