package caps_test

import (
	"testing"

	"runloop.dev/rlp/caps"
)

// onlyReads is every family and mode that neither leaves the machine nor
// changes it. It is written out: whoever adds a family or a mode is asked here.
var onlyReads = map[caps.Family]caps.ModeSet{
	caps.FS:     caps.Modes(caps.Read),
	caps.Time:   caps.AllModes(caps.Time),
	caps.KBRead: caps.AllModes(caps.KBRead),
	caps.Env:    caps.AllModes(caps.Env),
}

// Every family and mode is an effect but those that are known to be none, and
// so is what nothing is known of.
func TestActs(t *testing.T) {
	for f := range caps.Tool + 1 {
		for m := caps.Mode(0); caps.AllModes(f).Has(m); m++ {
			if got, want := caps.Acts(f, m), !onlyReads[f].Has(m); got != want {
				t.Errorf("%s mode %d acts: %v, want %v", f, m, got, want)
			}
		}
	}
	if !caps.Acts(caps.Tool+1, 0) || !caps.Acts(caps.FS, 31) {
		t.Error("what is not known must count as an effect")
	}
}
