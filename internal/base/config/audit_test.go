package config_test

import (
	"reflect"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/config"
)

func TestAuditSettings(t *testing.T) {
	c, err := load(t, "[audit]\ncheckpoint_every = 500\npublish = [\"file:/mnt/worm/rlp.checkpoints\", "+
		"\"git:/srv/evidence\", \"https://witness.example/rlp\", \"http://127.0.0.1:8080/x\", \"http://[::1]/\"]\n")
	if err != nil || c.Audit.CheckpointEvery != 500 || len(c.Audit.Publish) != 5 {
		t.Errorf("%+v, %v", c.Audit, err)
	}
	if d := config.Default().Audit; !reflect.DeepEqual(d, config.Audit{CheckpointEvery: 10_000}) {
		t.Errorf("default: %+v", d)
	}
	for _, bad := range []struct{ text, says string }{
		{"publish = \"file:/x\"", "2:11: audit.publish must be an array"},
		{"publish = [\"/mnt/x\"]", "2:12: audit.publish[0] must be"},
		{"publish = [\"file:x\"]", "absolute"},
		{"publish = [\"file:/a/../b\"]", "clean"},
		{"publish = [\"git:\"]", "absolute"},
		{"publish = [\"http://witness.example/\"]", "https URL"},
		{"publish = [\"http://127.0.0.1.example/\"]", "https URL"},
		{"publish = [\"https://u:p@witness.example/\"]", "without user"},
		{"publish = [\"ftp://witness.example/\"]", "https URL"},
		{"checkpoint_every = 0", "2:20: audit.checkpoint_every must be from 1"},
		{"checkpoint_every = \"10\"", "must be an integer"},
		{"every = 1", `unknown key "audit.every"`},
	} {
		if _, err := load(t, "[audit]\n"+bad.text+"\n"); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%s: %v does not say %q", bad.text, err, bad.says)
		}
	}
}
