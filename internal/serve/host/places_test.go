package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
)

// A question is one that a service is asked, and the rights that it takes.
type question struct {
	may service.Rights
	ask func(context.Context, *service.Caller) (any, error)
}

// all are all of them, about one agent.
func (h *testHost) all(agent string) map[string]question {
	const read, operate = service.Read, service.Read | service.Operate
	text := []byte("[capabilities]\nkb_write = [\"notes\"]\n")
	explain := func(q ask.Query) func(context.Context, *service.Caller) (any, error) {
		return func(ctx context.Context, c *service.Caller) (any, error) { return h.Explain(ctx, c, agent, q) }
	}
	return map[string]question{
		"explain":             {read, explain(ask.Query{Text: "kb:write:drafts"})},
		"explain the home":    {read, explain(ask.Query{Text: "fs:read:" + h.home})},
		"explain what is in":  {read, explain(ask.Query{Text: h.home + "/config.toml"})},
		"explain a host call": {read, explain(ask.Query{Text: "kb_put drafts"})},
		"holding": {read, func(ctx context.Context, c *service.Caller) (any, error) {
			return h.Holding(ctx, c, agent)
		}},
		"override": {read, func(ctx context.Context, c *service.Caller) (any, error) { return h.Override(ctx, c, agent) }},
		"suggest":  {read, func(ctx context.Context, c *service.Caller) (any, error) { return h.Suggest(ctx, c, agent) }},
		"inspect":  {read, func(ctx context.Context, c *service.Caller) (any, error) { return h.Inspect(ctx, c, agent) }},
		"verify":   {read, func(ctx context.Context, c *service.Caller) (any, error) { return h.Verify(ctx, c) }},
		"search": {read, func(ctx context.Context, c *service.Caller) (any, error) {
			return h.Search(ctx, c, kb.Query{Domain: "notes", Text: "x", K: 1})
		}},
		"try": {operate, func(ctx context.Context, c *service.Caller) (any, error) {
			return h.TryOverride(ctx, c, agent, ask.Trial{Text: text})
		}},
		"whatif": {operate, func(ctx context.Context, c *service.Caller) (any, error) {
			return h.WhatIf(ctx, c, agent, text)
		}},
		"lanes": {operate, func(ctx context.Context, c *service.Caller) (any, error) { return h.Lanes(ctx, c) }},
	}
}

// The rights are asked before anything is looked at: who has them not is refused
// even where there is nothing to look at. Who has them is told what is away, and
// nothing of what was asked for once they left.
func TestQuestionsTakeRights(t *testing.T) {
	h := testingHost(t, "")
	hosttest.Install(t, h.home, "plain", "", hosttest.Importing(t))
	away := h.home + ".away"
	if err := os.Rename(h.home, away); err != nil {
		t.Fatal(err)
	}
	for name, q := range h.all("plain") {
		for may := range service.Launch | service.Read | service.Operate + 1 {
			c := &service.Caller{Name: "token:t", Tenant: "default", May: may}
			_, err := q.ask(t.Context(), c)
			var gone *service.UnavailableError
			if can := c.Can(q.may); errors.Is(err, service.ErrForbidden) == can || can && !errors.As(err, &gone) {
				t.Errorf("%s by %v: %v", name, may, err)
			}
			if strings.Contains(fmt.Sprint(err), h.home) && !c.Can(service.Operate) {
				t.Errorf("%s by %v: %v", name, may, err)
			}
		}
	}
	if err := os.Rename(away, h.home); err != nil {
		t.Fatal(err)
	}
	left, cancel := context.WithCancel(t.Context())
	cancel()
	for name, q := range h.all("plain") {
		if _, err := q.ask(left, h.who); !errors.Is(err, context.Canceled) {
			t.Errorf("%s by who left: %v", name, err)
		}
	}
	for name, q := range h.all("nobody") {
		if slices.Contains([]string{"verify", "search", "lanes", "whatif"}, name) { // of no agent anyway
			continue
		}
		if _, err := q.ask(t.Context(), h.who); !errors.Is(err, service.ErrNotFound) {
			t.Errorf("%s of no agent: %v", name, err)
		}
	}
}

// What questions answer names files of the host to who operates; others are told
// where they are in the home, and neither where links lead nor what is protected.
func TestReadersAreToldNoPlace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	helper, secret, link, sink := filepath.Join(dir, "helper"), filepath.Join(dir, "secret"), filepath.Join(dir, "link"),
		filepath.Join(dir, "sink")
	if err := errors.Join(os.WriteFile(helper, nil, 0o700), os.Mkdir(secret, 0o700),
		os.Symlink(secret, link)); err != nil {
		t.Fatal(err)
	}
	h := testingHost(t, fmt.Sprintf("[security]\nrun_grant = \"operator_full\"\npath_profile = "+
		"\"relaxed\"\n[security.secrets]\nprovider = \"exec\"\n"+
		"command = [%q, \"{id}\"]\n[audit]\npublish = [%q]\n", helper, "file:"+sink))
	hosttest.Install(t, h.home, "placed", fmt.Sprintf("kb_write = [\"notes\", \"drafts\"]\nfs = [%q]\n", link), hosttest.Importing(t))
	h.put(t, "caps/overrides/placed.toml", "[capabilities]\nkb_write = [\"notes\"]\nfs = [\""+link+"\"]\n")
	r, err := h.do(t, &service.Request{Door: service.HTTP, Agent: "placed"})
	if err != nil {
		t.Fatal(err)
	}
	questions := h.all("placed")
	for name, q := range map[string]ask.Query{
		"of a run": {Text: "kb:write:drafts", Run: r.RunID}, "of a link": {Text: "fs:read:" + link + "/x"},
		"of a run, a link": {Text: link + "/x", Run: r.RunID},
		"of the helper":    {Text: "fs:read:" + helper}, "of a program": {Text: "exec " + link},
	} {
		questions[name] = question{service.Read, func(ctx context.Context, c *service.Caller) (any, error) {
			return h.Explain(ctx, c, "placed", q)
		}}
	}
	operator := *h.who
	operator.May = service.Read | service.Operate
	told := map[string]string{}
	for name, q := range questions {
		if q.may&service.Operate != 0 {
			continue
		}
		answer := func(c *service.Caller) string {
			v, err := q.ask(t.Context(), c)
			text, jsonErr := json.Marshal(v)
			var refused *ask.Error
			if errors.As(err, &refused) && !c.Can(service.Operate) && strings.Contains(err.Error(), "only who operates") {
				return err.Error() // of no path that the policy writes
			}
			if err := errors.Join(err, jsonErr); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return string(text)
		}
		said := answer(&service.Caller{Name: "token:reader", Tenant: "default", May: service.Read})
		for of, place := range map[string]string{
			"the home": h.home, "the helper": helper, "a link": secret, "a sink": sink,
			"a layer": `"protected"`,
		} {
			if mine := strings.HasPrefix(name, "explain the home") || strings.HasPrefix(name, "explain what is in") ||
				name == "of the helper"; mine && (place == h.home || place == helper) {
				continue // they named it
			}
			if strings.Contains(said, place) {
				t.Errorf("%s: a reader is told of %s: %s", name, of, said)
			}
		}
		told[name] = answer(&operator)
	}
	for name, place := range map[string]string{
		"explain": h.home, "override": h.home, "holding": secret, "of a run": h.home, "of a link": secret,
		"explain the home": "protected", "verify": sink,
	} {
		if !strings.Contains(told[name], place) {
			t.Errorf("control: %s: an operator is told %s", name, told[name])
		}
	}
}

// Of a path that who reads names, and the agent does not hold, is said the same
// whether it is one that the host keeps for itself or not.
func TestReadersCannotAskWhatIsProtected(t *testing.T) {
	h := testingHost(t, "")
	hosttest.Install(t, h.home, "plain", "", hosttest.Importing(t))
	of := func(path string) string {
		e, err := h.Explain(t.Context(), &service.Caller{Tenant: "default", May: service.Read}, "plain",
			ask.Query{Text: path})
		text, jsonErr := json.Marshal(e)
		if err := errors.Join(err, jsonErr); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(text), path, "PATH")
	}
	none := of("/srv/nothing")
	for _, path := range []string{h.home, h.home + "/config.toml", "/proc/self", "/dev/sda"} {
		if said := of(path); said != none {
			t.Errorf("of %s is said\n%s\nand of another\n%s", path, said, none)
		}
	}
}

// Where a link of the policy leads, beneath a base of all, is confirmed by no guess:
// what a reader is told is the same whatever the link leads to, and whether anything
// is there.
func TestReadersConfirmNoGuessOfWhereALinkLeads(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link, denied := dir+"/link", dir+"/denied"
	if err := errors.Join(os.Mkdir(dir+"/secret", 0o700), os.Mkdir(dir+"/other", 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, paths := range []string{"strict", "relaxed"} {
		h := testingHost(t, "[security]\npath_profile = \""+paths+"\"\n")
		h.put(t, "caps/profiles/mcp_default.toml", "name = \"mcp_default\"\n[limits]\nmax_depth = 3\n")
		hosttest.Install(t, h.home, "all", "fs = [\"/\"]\nfs_rw = [\"/\"]\n", hosttest.Importing(t))
		h.put(t, "caps/overrides/all.toml", fmt.Sprintf("[capabilities]\nfs = [%q, %q]\n[deny]\ncapabilities = [%q]\n",
			link, dir+"/open", "fs:*:"+denied))
		said := func(may service.Rights) string {
			var all strings.Builder
			who := &service.Caller{Name: "token:reader", Tenant: "default", May: may}
			for _, q := range []ask.Query{
				{Text: dir + "/secret/x"},
				{Text: dir + "/other/x"},
				{Text: link + "/x"},
				{Text: link, Write: true},
				{Text: dir + "/open/secret"},
				{Text: dir + "/none"},
			} {
				e, err := h.Explain(t.Context(), who, "all", q)
				text, jsonErr := json.Marshal(e)
				if err := errors.Join(err, jsonErr); err != nil {
					t.Fatalf("%s: %v", q.Text, err)
				}
				all.Write(append(text, '\n'))
			}
			held, err := h.Holding(t.Context(), who, "all")
			text, jsonErr := json.Marshal(held)
			if err := errors.Join(err, jsonErr); err != nil {
				t.Fatal(err)
			}
			return all.String() + string(text)
		}
		var readers, operators []string
		for _, c := range []struct{ link, denied string }{
			{"", ""}, {dir + "/secret", ""}, {dir + "/other", ""}, {dir + "/secret", dir + "/open/secret"}, {"none", ""},
		} {
			_, _ = os.Remove(link), os.Remove(denied)
			if err := errors.Join(linkTo(c.link, link), linkTo(c.denied, denied)); err != nil {
				t.Fatal(err)
			}
			readers = append(readers, said(service.Read))
			operators = append(operators, said(service.Read|service.Operate))
		}
		_, _ = os.Remove(link), os.Remove(denied)
		if list := slices.Compact(readers); len(list) != 1 {
			t.Errorf("%s: readers are told apart what is there:\n%s", paths, strings.Join(list, "\n\n"))
		}
		if list := slices.Compact(operators); len(list) != 5 {
			t.Errorf("control: %s: of 5 cases who operates is told %d", paths, len(list))
		}
		if !strings.Contains(readers[0], `"decision":"allow"`) || !strings.Contains(readers[0], `"decision":"deny"`) {
			t.Errorf("control: %s: %s", paths, readers[0])
		}
	}
}

func linkTo(text, name string) error {
	if text == "" {
		return nil
	}
	return os.Symlink(text, name)
}

// A text of the caller's own that cannot be an override is told by its line; a file
// of the operator's that cannot be read is not the caller's.
func TestWhoseTextIsBroken(t *testing.T) {
	h := testingHost(t, "")
	hosttest.Install(t, h.home, "plain", "fs = [\"/\"]\n", hosttest.Importing(t))
	for name, text := range map[string]string{
		"a key":       "[limits]\n[capabilties]\nnet = []\n",
		"a path":      "[capabilities]\nfs = [\"/etc/passwd/x\"]\n",
		"no TOML":     "[limits]\n[\n",
		"a parameter": "schema = \"0.2\"\n[params]\nx = 7\n",
	} {
		for question, try := range map[string]func() error{
			"try": func() error {
				_, err := h.TryOverride(t.Context(), h.who, "plain", ask.Trial{Text: []byte(text)})
				return err
			},
			"whatif": func() error { _, err := h.WhatIf(t.Context(), h.who, "plain", []byte(text)); return err },
		} {
			var wrong *ask.TextError
			if err := try(); !errors.As(err, &wrong) || wrong.Line < 2 || strings.Contains(wrong.Error(), h.home) {
				t.Errorf("%s, %s: %T %v", question, name, err, err)
			}
		}
	}
	long := make([]byte, 1<<20)
	var fault *ask.Error
	if _, err := h.TryOverride(t.Context(), h.who, "plain", ask.Trial{Text: long}); !errors.As(err, &fault) {
		t.Errorf("a text that is too long: %v", err)
	}
	h.put(t, "caps/overrides/plain.toml", "[limits]\n[capabilties]\n")
	var away *service.UnavailableError
	if _, err := h.TryOverride(t.Context(), h.who, "plain", ask.Trial{Text: []byte("[limits]\n")}); !errors.As(err,
		&away) || !strings.Contains(err.Error(), "plain.toml:2:") {
		t.Errorf("who operates is told %v", err)
	}
	reader := &service.Caller{Tenant: "default", May: service.Read}
	if _, err := h.Override(t.Context(), reader, "plain"); !errors.As(err, &away) || strings.Contains(err.Error(),
		"plain.toml") {
		t.Errorf("a reader is told %v", err)
	}
}

// A text of the caller's own is a policy, whose paths are looked up on the host:
// who may not operate is refused before that, wherever the paths lead, and who may
// not read is told nothing.
func TestTextsOfCallersTakeTheRightToOperate(t *testing.T) {
	h := testingHost(t, "")
	hosttest.Install(t, h.home, "plain", "", hosttest.Importing(t))
	there, gone := t.TempDir(), filepath.Join(t.TempDir(), "gone")
	text := func(path string) []byte { return fmt.Appendf(nil, "[params]\nnotes = %q\n", path) }
	for name, try := range map[string]func([]byte) error{
		"override": func(text []byte) error {
			_, err := h.TryOverride(t.Context(), h.who, "plain", ask.Trial{Text: text})
			return err
		},
		"whatif": func(text []byte) error { _, err := h.WhatIf(t.Context(), h.who, "plain", text); return err },
	} {
		h.who.May = service.Launch | service.Read
		for _, path := range []string{there, gone, "/etc/passwd/x", h.home} {
			if err := try(text(path)); !errors.Is(err, service.ErrForbidden) {
				t.Errorf("%s of %s: %v", name, path, err)
			}
		}
		h.who.May |= service.Operate
		if err := try([]byte("[capabilities]\n")); err != nil {
			t.Errorf("control: %s: %v", name, err)
		}
	}
}
