package host

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/internal/serve/service"
)

// A link in a path that a file of the operator's names is the operator's matter, as
// a path that is not there is: no request could write it otherwise.
//
//rlp:holds A54
func TestALinkInAFileOfTheOperatorsIsNoFaultOfTheRequest(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder, link := filepath.Join(dir, "folder"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Symlink(folder, link)); err != nil {
		t.Fatal(err)
	}
	const placeholder = "schema = \"0.2\"\n[capabilities]\nfs = [\"{notes}\"]\n"
	for name, c := range map[string]struct{ policy, override, where string }{
		"value of a placeholder": {placeholder, "[params]\nnotes = \"PATH\"\n", "plain.toml:2:9"},
		"bound": {
			"[capabilities]\nfs = [\"" + folder + "\"]\n", "[capabilities]\nfs = [\"PATH\"]\n",
			"plain.toml:2:7",
		},
	} {
		h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
		var log bytes.Buffer
		h.Host.log = slog.New(slog.NewTextHandler(&log, nil))
		hosttest.Install(t, h.home, "plain", "", importing(t))
		h.put(t, "agents/plain/policy.caps", c.policy)
		if c.policy == placeholder {
			manifest := filepath.Join(h.home, "agents", "plain", "manifest.toml")
			text, err := os.ReadFile(manifest)
			if err != nil {
				t.Fatal(err)
			}
			h.put(t, "agents/plain/manifest.toml", string(text)+
				"[params]\nnotes = { kind = \"dir\", description = \"the notes\" }\n")
		}
		h.who.May = service.Launch | service.Read
		q := &service.Request{Door: service.HTTP, Agent: "plain"}
		for _, path := range []string{folder, link} {
			h.put(t, "caps/overrides/plain.toml", strings.ReplaceAll(c.override, "PATH", path))
			_, err := h.do(t, q)
			var away *service.UnavailableError
			if linked := path == link; errors.As(err, &away) != linked || linked && strings.Contains(err.Error(), "/") ||
				!linked && err != nil {
				t.Errorf("%s, %s: %T %v", name, path, err, err)
			}
		}
		if !strings.Contains(log.String(), c.where) {
			t.Errorf("%s: the log says %s", name, log.String())
		}
		h.who.May |= service.Operate
		if _, err := h.do(t, q); err == nil || !strings.Contains(err.Error(), c.where+") leads through the link "+link+" to "+
			folder+": write "+folder) {
			t.Errorf("%s: the operator is told %v", name, err)
		}
	}
}
