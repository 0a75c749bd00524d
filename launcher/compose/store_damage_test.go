package compose

import (
	"slices"
	"testing"

	"runloop.dev/rlp/internal/record/evidence"
)

// What tells a launch that a log was signed are the files of its key.
func TestTheFilesOfTheKeyAreThoseOfTheLog(t *testing.T) {
	if !slices.Equal(logKeys, []string{evidence.KeyFile, evidence.PublicFile}) {
		t.Error(logKeys)
	}
}
