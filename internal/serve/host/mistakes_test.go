package host

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/internal/serve/service"
)

// put writes a file of the operator's.
func (h *testHost) put(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(h.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// withTemplate is a bundle that names the template t.
func withTemplate(t testing.TB) []byte {
	t.Helper()
	const policy = "schema=\"0.2\"\ntemplates=[\"t\"]\n"
	pad := strings.Repeat("#", len(policy)-len("[capabilities]\n"))
	return bytes.Replace(archived(t, "sent", pad, importing(t)), []byte("[capabilities]\n"+pad), []byte(policy), 1)
}

// asksAll asks all that answers to who.
func (h *testHost) asksAll(t testing.TB, q *service.Request) map[string]error {
	t.Helper()
	_, run := h.do(t, q)
	_, surface := h.Surface(t.Context(), h.who, q.Door)
	_, asked := h.Holding(t.Context(), h.who, "plain")
	list, agents := h.Agents(t.Context(), h.who)
	if i := slices.IndexFunc(list, func(a service.Agent) bool { return a.Problem != "" }); i >= 0 {
		agents = &service.UnavailableError{Why: errors.New(list[i].Problem)}
	}
	return map[string]error{"run": run, "surface": surface, "ask": asked, "agents": agents}
}

// A file of the operator's that is broken is the operator's matter, whatever the
// request: a caller who does not operate is told that, and no path; the operator
// is told file, line and key; the log has it for both.
//
//rlp:holds A54
func TestABrokenFileOfTheOperatorsIsNoFaultOfTheRequest(t *testing.T) {
	const slip = "[deny]\ncapabilties = []\n"
	for name, c := range map[string]struct {
		file, text string
		bundle     string // what it asks for
		q          service.Request
		where      string   // what the operator is told
		also       []string // what else cannot be answered
	}{
		"override of what is sent": {"caps/overrides/sent.toml", slip, "", service.Request{}, "sent.toml:2:1: ", nil},
		"override of all, sent": {
			"caps/overrides/_default.toml", slip, "",
			service.Request{},
			"_default.toml:2:1: ",
			[]string{"surface", "ask", "agents"},
		},
		"override of all, by name": {
			"caps/overrides/_default.toml", slip, "",
			service.Request{Agent: "plain"},
			"_default.toml:2:1: ",
			[]string{"surface", "ask", "agents"},
		},
		"override of one": {
			"caps/overrides/plain.toml", slip, "",
			service.Request{Agent: "plain"},
			"plain.toml:2:1: ",
			[]string{"ask", "agents"},
		},
		"profile that is named": {
			"caps/profiles/mine.toml", slip, "",
			service.Request{Profiles: []string{"mine"}},
			"mine.toml:2:1: ", nil,
		},
		"profile, by name": {"caps/profiles/mine.toml", slip, "", service.Request{
			Agent:    "plain",
			Profiles: []string{"mine"},
		}, "mine.toml:2:1: ", nil},
		"profile of the door": {
			"caps/profiles/operator_full.toml", slip, "",
			service.Request{},
			"operator_full.toml:2:1: ",
			[]string{"surface", "ask", "agents"},
		},
		"template": {
			"caps/templates/t.toml", "[capabilities]\nfs = 7\n", "#0.2",
			service.Request{},
			"t.toml:2:6: ", nil,
		},
		"settings": {
			"config.toml", "[security]\nrun_grnt = \"\"\n", "",
			service.Request{},
			"/config.toml:2:1: ",
			[]string{"surface", "ask", "agents"},
		},
		"a file that nothing reads": {
			"caps/overrides/sent", "", "",
			service.Request{},
			" is not read by anything; the override of this agent is called", nil,
		},
	} {
		for _, door := range []service.Door{service.HTTP, service.MCP} {
			if testing.Short() && door == service.MCP { // for the race detector it is the same
				continue
			}
			t.Run(name+", "+string(door), func(t *testing.T) {
				h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
				var log bytes.Buffer
				h.Host.log = slog.New(slog.NewTextHandler(&log, nil))
				hosttest.Install(t, h.home, "plain", "", importing(t))
				q := c.q
				q.Door = door
				if q.Agent == "" {
					q.Bundle = archived(t, "sent", "", importing(t))
				}
				if c.bundle != "" {
					h.put(t, c.file, "[capabilities]\ntime = true\n")
					q.Bundle = withTemplate(t)
				}
				if len(q.Profiles) > 0 {
					h.put(t, c.file, "[deny]\ncapabilities = []\n")
				}
				h.who.May = service.Launch | service.Read
				for what, err := range h.asksAll(t, &q) {
					if err != nil {
						t.Fatalf("control: %s: %v", what, err)
					}
				}
				h.put(t, c.file, c.text)
				told := append([]string{"run"}, c.also...)
				for what, err := range h.asksAll(t, &q) {
					var away *service.UnavailableError
					if !slices.Contains(told, what) {
						if err != nil {
							t.Errorf("%s: %v", what, err)
						}
						continue
					}
					if !errors.As(err, &away) || strings.Contains(err.Error(), "/") || strings.Contains(err.Error(), ".toml") ||
						!strings.Contains(err.Error(), "the log of the service says why") {
						t.Errorf("%s: %T %v", what, err, err)
					}
				}
				if !strings.Contains(log.String(), c.where) {
					t.Errorf("the log says %s", log.String())
				}
				h.who.May |= service.Operate
				for what, err := range h.asksAll(t, &q) {
					if slices.Contains(told, what) && (err == nil || !strings.Contains(err.Error(), c.where)) {
						t.Errorf("the operator, %s: %v", what, err)
					}
				}
			})
		}
	}
}

// What is wrong with the caller's own bundle is told by its field, in the words
// of the bundle, whoever asks.
//
//rlp:holds A54
func TestABrokenBundleIsTheCallers(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	h.who.May = service.Launch
	h.put(t, "a file", "")
	for name, c := range map[string]struct{ asks, want string }{
		"a slip":           {"fs = 7\n", "policy.caps:2:6: fs"},
		"no such template": {"time = true\n", "policy.caps:2:12: there is no template"},
		"..":               {"fs = [\"/srv/../etc\"]\n", "policy.caps:2:7"},
	} {
		t.Run(name, func(t *testing.T) {
			archive := archived(t, "sent", c.asks, importing(t))
			if name == "no such template" {
				archive = withTemplate(t)
			}
			_, err := h.do(t, &service.Request{Door: service.HTTP, Bundle: archive})
			var fields service.FieldErrors
			if !errors.As(err, &fields) || len(fields) != 1 || fields[0].Field != "bundle" || !strings.Contains(fields[0].Why,
				c.want) || strings.Contains(err.Error(), h.home) {
				t.Errorf("%T %v", err, err)
			}
		})
	}
	h.who.May |= service.Operate // to others such a path is one that meets nothing
	_, err := h.do(t, &service.Request{Door: service.HTTP, Bundle: archived(t, "sent", "fs = [\"/dev/null/x\"]\n",
		importing(t))})
	var fields service.FieldErrors
	if !errors.As(err, &fields) || len(fields) != 1 || fields[0].Field != "bundle" || !strings.Contains(fields[0].Why,
		"policy.caps:2:7") {
		t.Errorf("through what is no folder: %T %v", err, err)
	}
	_, err = h.do(t, &service.Request{
		Door: service.HTTP, Bundle: archived(t, "sent", "", importing(t)),
		Allow: []string{"env:read:A", "fs:read:/dev/null/x"},
	})
	if !errors.As(err, &fields) || fields[0].Field != "allow[1]" {
		t.Errorf("%T %v", err, err)
	}
}

// What stands in the way of the log is told the operator, by the log of the
// service, and nobody else.
func TestALogThatIsAwayTellsNoPath(t *testing.T) {
	h := testingHost(t, "")
	var log bytes.Buffer
	h.Host.log = slog.New(slog.NewTextHandler(&log, nil))
	h.put(t, "config.toml", "[kb]\ndomains = 7\n")
	_, err := h.Log(context.Background(), &service.Caller{Tenant: "default"})
	var away *service.UnavailableError
	if !errors.As(err, &away) || strings.Contains(err.Error(), "/") || !strings.Contains(log.String(), "config.toml:2") {
		t.Errorf("%v; the log: %s", err, log.String())
	}
}

// A report tells who does not operate which files took what, and not where the
// home is.
func TestReportsTellNoHome(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	hosttest.Install(t, h.home, "plain", "time = true\nenv = [\"FOO\"]\n", importing(t))
	h.put(t, "caps/overrides/plain.toml", "[deny]\ncapabilities = [\"env:*:*\"]\n")
	for _, may := range []service.Rights{service.Launch | service.Read, service.Launch | service.Operate} {
		h.who.May = may
		r, err := h.do(t, &service.Request{Door: service.HTTP, Agent: "plain"})
		if err != nil || len(r.Changes) != 1 {
			t.Fatalf("%+v %v", r, err)
		}
		text, err := json.Marshal(r)
		if err != nil || strings.Contains(string(text), h.home) != (may&service.Operate != 0) ||
			!strings.HasSuffix(r.Changes[0].Source, "caps/overrides/plain.toml:2:17") {
			t.Errorf("%v %s", err, text)
		}
	}
	hosttest.Install(t, h.home, "calls", "env = [\"FOO\"]\n", importing(t, "environ_get"))
	h.put(t, "caps/overrides/calls.toml", "[deny]\ncapabilities = [\"env:*:*\"]\n")
	for _, may := range []service.Rights{service.Launch | service.Read, service.Launch | service.Operate} {
		h.who.May = may
		_, err := h.do(t, &service.Request{Door: service.HTTP, Agent: "calls"})
		var refused *service.ViolationError
		if !errors.As(err, &refused) || len(refused.Violations) != 1 {
			t.Fatal(err)
		}
		if text := refused.Violations[0].Message; strings.Contains(text, h.home) != (may&service.Operate != 0) ||
			!strings.Contains(text, "caps/overrides/calls.toml:2:17") {
			t.Error(text)
		}
	}
}

// What always is kept from agents is carved out of whatever a bundle asks for. Who may
// only launch would learn from a bundle that asks for everything where the home is,
// whatever they are left of it; what they asked for themselves they are told of.
func TestWhatIsCarvedOutTellsNoHome(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	left := t.TempDir()
	h.who.Layers = []*caps.Layer{layerOf(t, "token:ci", "[capabilities]\nfs = [\""+left+"\"]\n")}
	all := &service.Request{Bundle: archived(t, "all", "fs = [\"/\"]\n", importing(t))}
	needs := &service.Request{Bundle: archived(t, "needs", "fs = [\""+filepath.Dir(h.home)+"\"]\n",
		importing(t, "path_open"))}
	itself := &service.Request{Bundle: archived(t, "itself", "fs = [\""+h.home+"\"]\n", importing(t, "path_open"))}
	for _, may := range []service.Rights{service.Launch | service.Read, service.Launch | service.Operate} {
		h.who.May = may
		r, err := h.do(t, all)
		if err != nil || len(r.Effective) != 1 {
			t.Fatalf("control: %+v, %v", r, err)
		}
		text, err := json.Marshal(r)
		if err != nil || strings.Contains(string(text), h.home) != (may&service.Operate != 0) ||
			strings.Contains(string(text), "/proc") != (may&service.Operate != 0) {
			t.Errorf("%v %s", err, text)
		}
		var refused *service.ViolationError
		if _, err = h.do(t, needs); !errors.As(err, &refused) || len(refused.Violations) == 0 {
			t.Fatal(err)
		}
		text, err = json.Marshal(refused.Violations)
		if err != nil || strings.Contains(string(text), h.home) != (may&service.Operate != 0) {
			t.Errorf("%v %s", err, text)
		}
		if _, err = h.do(t, itself); !errors.As(err, &refused) || !strings.HasSuffix(refused.Violations[0].Capability,
			h.home) {
			t.Errorf("what was asked for itself: %v", err)
		}
	}
}

func layerOf(t *testing.T, name, text string) *caps.Layer {
	t.Helper()
	o, findings := policy.ParseLayer(name, name, []byte(text), policy.Options{})
	if err := policy.AsError(findings); err != nil {
		t.Fatal(err)
	}
	return o.Layer
}

// An archive as tar makes it of a folder is refused with the command that makes
// one which is taken.
func TestArchivesOfAFolderAreToldHowToBeMade(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o700}),
		w.WriteHeader(&tar.Header{Name: "./manifest.toml", Mode: 0o600}), w.Close()); err != nil {
		t.Fatal(err)
	}
	_, err := h.do(t, &service.Request{Door: service.HTTP, Bundle: b.Bytes()})
	var fields service.FieldErrors
	if !errors.As(err, &fields) || fields[0].Field != "bundle" || !strings.Contains(fields[0].Why,
		"tar -C DIR -cf bundle.tar $(ls DIR)") {
		t.Error(err)
	}
}

// What a request says of paths tells who does not operate nothing of the host: a link,
// what is no folder, and what there is not are answered alike, in every field that
// takes paths.
func TestRequestsLearnNothingOfPaths(t *testing.T) {
	for _, profile := range []string{"strict", "relaxed"} {
		h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\npath_profile = \""+profile+"\"\n")
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		secret, base := filepath.Join(dir, "secret"), filepath.Join(dir, "base")
		if err := errors.Join(os.Mkdir(secret, 0o700), os.Mkdir(base, 0o700), os.WriteFile(filepath.Join(dir, "file"), nil,
			0o600),
			os.Symlink(secret, filepath.Join(dir, "link")), os.Symlink("loop", filepath.Join(dir, "loop"))); err != nil {
			t.Fatal(err)
		}
		hosttest.Install(t, h.home, "plain", "fs = [\""+base+"\"]\n", importing(t))
		ask := func(may service.Rights, path string, kind int) string {
			q := &service.Request{Door: service.HTTP, Agent: "plain"}
			switch kind {
			case 0:
				q.Allow = []string{"fs:read:" + path}
			case 1:
				q.Deny = []string{"fs:read:" + path}
			case 2:
				q.Override = "[capabilities]\nfs = [\"" + path + "\"]\n"
			case 3:
				q.Allow = []string{"process:exec:" + path}
			case 4:
				q.Override = "schema = \"0.2\"\n[leases]\n\"fs:read:" + path + "\" = { max_uses = 1 }\n"
			}
			h.who.May = may
			return h.answer(t, q)
		}
		const may = service.Launch | service.Read
		for kind := range 5 {
			nothing := ask(may, filepath.Join(dir, "none"), kind)
			for _, path := range []string{"link", "file/x", "link/x", "loop/x", "file"} {
				said := ask(may, filepath.Join(dir, path), kind)
				if alike := strings.ReplaceAll(said, filepath.Join(dir, path), filepath.Join(dir, "none")); alike != nothing {
					t.Errorf("%s, kind %d: of %s is said\n%s\nand of what there is not\n%s", profile, kind, path, said, nothing)
				}
			}
		}
		if said := ask(may|service.Operate, filepath.Join(dir, "link"), 0); !strings.Contains(said, secret) {
			t.Errorf("control: %s: who operates is told %s", profile, said)
		}
	}
}

// What a sent bundle asks for tells who does not operate nothing of the host either,
// left or taken away by the grant of the door, in strict and in relaxed; who operates
// is told all, and so is the log.
func TestRequestsLearnNothingOfPathsOfTheirBundle(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret")
	if err := errors.Join(os.Mkdir(secret, 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.WriteFile(filepath.Join(secret, "x"), nil, 0o600),
		os.Symlink(secret, filepath.Join(dir, "link")), os.Symlink("loop", filepath.Join(dir, "loop")),
		os.Symlink(filepath.Join(dir, "no"), filepath.Join(dir, "dead"))); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, profile := range []string{"strict", "relaxed"} {
		for _, door := range []string{"operator_full", "little"} {
			h := testingHost(t, "[security]\nrun_grant = \""+door+"\"\npath_profile = \""+profile+"\"\n")
			var log bytes.Buffer
			h.Host.log = slog.New(slog.NewTextHandler(&log, nil))
			h.put(t, "caps/profiles/little.toml",
				"schema = \"0.2\"\n[capabilities]\ntime = true\nexec = [\"/usr/bin/env\"]\nfs = [\""+t.TempDir()+"\"]\n")
			for kind, asks := range []string{
				"time = true\nfs = [\"%s\"]\n", "time = true\nfs = [\"" + dir + "/a\", \"%s\"]\n",
				"time = true\nfs = [\"%[1]s\"]\n[leases]\n\"fs:read:%[1]s\" = { max_uses = 1 }\n", "time = true\nexec = [\"%s\"]\n",
			} {
				if kind == 3 && door == "operator_full" {
					continue // it may start any program
				}
				const schema, pad, capabilities = "schema=\"0.2\"\n", "#############", "[capabilities]\n"
				ask := func(may service.Rights, path string) string {
					h.who.May = may
					return h.answer(t, &service.Request{
						Door: service.HTTP,
						Bundle: bytes.Replace(archived(t, "sent", pad+fmt.Sprintf(asks, path), importing(t)), []byte(capabilities+pad),
							[]byte(schema+capabilities), 1),
					})
				}
				const may = service.Launch | service.Read
				nothing := ask(may, filepath.Join(dir, "nothing"))
				for _, name := range []string{"link", "link/x", "file/x", "loop", "loop/x", "dead", "none/x", "socket"} {
					path := filepath.Join(dir, name)
					said := ask(may, path)
					if alike := strings.ReplaceAll(said, path, filepath.Join(dir, "nothing")); alike != nothing ||
						strings.Contains(said, secret) {
						t.Errorf("%s, %s, kind %d: of %s is said\n%s\nand of what there is not\n%s", profile, door, kind, name, said,
							nothing)
					}
				}
				if taken := ask(may, filepath.Join(dir, "file")); door == "little" && strings.ReplaceAll(taken,
					filepath.Join(dir, "file"), filepath.Join(dir, "nothing")) != nothing {
					t.Errorf("%s, kind %d: of a file that the grant takes is said\n%s\nand of what there is not\n%s", profile, kind,
						taken, nothing)
				}
				if said := ask(may|service.Operate, filepath.Join(dir, "link")); !strings.Contains(said, secret) {
					t.Errorf("control: %s, %s, kind %d: who operates is told %s", profile, door, kind, said)
				}
			}
			if !strings.Contains(log.String(), "leads through the link "+dir+"/link to "+secret) {
				t.Errorf("%s: the log says %s", profile, log.String())
			}
		}
	}
}

// Where a link leads by which a file of the operator's names a path is not told to
// who sent a bundle that asks for all, whatever it leads to; who operates is.
func TestRequestsLearnNothingOfTheOperatorsLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	err = errors.Join(os.Mkdir(filepath.Join(dir, "secret"), 0o700), os.Mkdir(filepath.Join(dir, "other"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	h := testingHost(t, "[security]\nrun_grant = \"linked\"\npath_profile = \"relaxed\"\n")
	h.put(t, "caps/profiles/linked.toml", "[capabilities]\nfs = [\""+link+"\"]\n")
	ask := func(may service.Rights) string {
		h.who.May = may
		return h.answer(t, &service.Request{Door: service.HTTP, Bundle: archived(t, "sent", "fs = [\"/\"]\n", importing(t))})
	}
	var told []string
	for _, leads := range []string{"secret", "other"} {
		_ = os.Remove(link)
		if err := os.Symlink(filepath.Join(dir, leads), link); err != nil {
			t.Fatal(err)
		}
		told = append(told, ask(service.Launch|service.Read))
		if said := ask(service.Launch | service.Read | service.Operate); !strings.Contains(said, filepath.Join(dir, leads)) {
			t.Errorf("control: who operates is told %s", said)
		}
	}
	if told[0] != told[1] || !strings.Contains(told[0], "fs:read:"+link) {
		t.Errorf("told is\n%s\nand\n%s", told[0], told[1])
	}
}

// answer is all that a caller is told of a run.
func (h *testHost) answer(t *testing.T, q *service.Request) string {
	t.Helper()
	r, err := h.do(t, q)
	var refused *service.ViolationError
	if errors.As(err, &refused) {
		return fmt.Sprint(err, refused.Violations)
	}
	if err != nil {
		return err.Error()
	}
	p, err := json.Marshal([]any{r.Outcome, r.Message, r.Base, r.Effective, r.Changes, r.Warnings, r.Violations, r.Tools})
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}
