package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
)

// Where a program's name leads is told nobody who does not operate, whatever takes
// programs from requests: a bound, a denial, or nothing.
func TestWhereASentProgramLeadsIsTold(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secret, link := filepath.Join(dir, "secret"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(secret, nil, 0o700), os.Symlink(secret, link)); err != nil {
		t.Fatal(err)
	}
	for name, door := range map[string]string{
		"nothing": "runner_default", "everything": "operator_full", "denied": "little", "bounded": "bound",
	} {
		h := testingHost(t, "[security]\nrun_grant = \""+door+"\"\n")
		h.put(t, "caps/profiles/little.toml", "[deny]\ncapabilities = [\"exec:*:*\"]\n")
		h.put(t, "caps/profiles/bound.toml", "[capabilities]\nexec = []\n")
		archive := asksFor(t, "exec = [\""+link+"\"]\n")
		h.who.May = service.Launch
		said := h.answer(t, &service.Request{Door: service.HTTP, Bundle: archive})
		if strings.Contains(said, secret) || !strings.Contains(said, link) {
			t.Errorf("%s: %s", name, said)
		}
		h.who.May |= service.Operate
		if said := h.answer(t, &service.Request{Door: service.HTTP, Bundle: archive}); !strings.Contains(said, secret) {
			t.Errorf("control: %s: who operates is told %s", name, said)
		}
	}
}

// asksFor is an archive of a policy of schema 0.2.
func asksFor(t *testing.T, asks string) []byte {
	t.Helper()
	const schema, pad, capabilities = "schema=\"0.2\"\n", "#############", "[capabilities]\n"
	return bytes.Replace(archived(t, "sent", pad+asks, importing(t)), []byte(capabilities+pad),
		[]byte(schema+capabilities), 1)
}

// What the settings name and what else is protected is told nobody who does not
// operate: not in a report, a refusal, a record, the surface or what commands about
// capabilities print; and of a path that they guess nobody says that it is one.
func TestWhatIsProtectedIsTold(t *testing.T) {
	helper := filepath.Join(t.TempDir(), "helper")
	if err := os.WriteFile(helper, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, door := range []string{"runner_default", "operator_full"} {
		h := testingHost(t, "[security]\nrun_grant = \""+door+"\"\n[security.secrets]\nprovider = \"exec\"\ncommand = [\""+
			helper+"\", \"{id}\"]\n")
		hosttest.Install(t, h.home, "plain", "fs = [\"/\"]\n", importing(t))
		all := func(may service.Rights) string {
			h.who.May = may
			said := h.answer(t, &service.Request{Door: service.HTTP, Bundle: asksFor(t, "fs_rw = [\"/\"]\n")})
			said += h.answer(t, &service.Request{Door: service.HTTP, Bundle: archived(t, "needs", "fs_rw = [\"/\"]\n",
				importing(t, "path_open"))})
			surface, err := h.Surface(t.Context(), h.who, service.HTTP)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(surface)
			if err != nil {
				t.Fatal(err)
			}
			said += string(text)
			if may&service.Read != 0 {
				held, err := h.Holding(t.Context(), h.who, "plain")
				if err != nil {
					t.Fatal(err)
				}
				if text, err = json.Marshal(held); err != nil {
					t.Fatal(err)
				}
				said += string(text)
			}
			return said + h.logged(t)
		}
		told := all(service.Launch | service.Read)
		for _, secret := range []string{helper, h.home, "/proc", `"protected"`, "by protected"} {
			if strings.Contains(told, secret) {
				t.Errorf("%s: %s is told: %s", door, secret, told)
			}
		}
		if whole := all(service.Launch | service.Read | service.Operate); !strings.Contains(whole, helper) ||
			!strings.Contains(whole, `"protected"`) {
			t.Errorf("control: who operates is told %s", whole)
		}
		if door == "operator_full" {
			continue // what is not left of it is what is protected
		}
		guess := func(path string) string {
			h.who.May = service.Launch
			said := h.answer(t, &service.Request{Door: service.HTTP, Bundle: asksFor(t, "fs = [\""+path+"\"]\n")})
			said += h.begun(t) // by which the run's own caller follows it
			return strings.ReplaceAll(said, path, "GUESS")
		}
		if of, other := guess(h.home), guess(h.home+"x"); of != other {
			t.Errorf("of the home is said\n%s\nand of what is not it\n%s", of, other)
		}
	}
}

// begun is what the newest run asked for, as the log tells the caller.
func (h *testHost) begun(t *testing.T) string {
	t.Helper()
	log, err := h.Log(t.Context(), h.who)
	if err != nil {
		t.Fatal(err)
	}
	base := ""
	for r, err := range log.Audit(t.Context(), kb.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e := r.Event; e != nil && e.Kind == audit.KindRunStart {
			base = strings.Join(e.Base, " ")
		}
	}
	return base
}

// logged is all that the log tells the caller.
func (h *testHost) logged(t *testing.T) string {
	t.Helper()
	log, err := h.Log(t.Context(), h.who)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for line, err := range log.Lines(t.Context(), kb.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		text += string(line) + "\n"
	}
	return text
}
