package launcher_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/launcher"
)

// A module without a bundle holds what the program says that it asks for, and
// nothing else; Allow stays a layer, and a bundle is asked itself.
//
//rlp:holds D4
func TestAModuleAsksForItsBase(t *testing.T) {
	work := t.TempDir()
	bundle := puts(t, work)
	path := filepath.Join(work, "Puts it.wasm")
	write(t, path, putting())
	l, err := launcher.Open(launcher.Options{Home: filepath.Join(work, "home")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name              string
		base, allow, deny []string
		want              []string
	}{
		{"nothing", nil, nil, nil, nil},
		{"an allow is no base", nil, []string{"kb:write:notes"}, nil, nil},
		{"its base", []string{"kb:write:notes"}, nil, nil, []string{"kb:write:notes"}},
		{"denied", []string{"kb:write:notes"}, nil, []string{"kb:write:*"}, nil},
		{
			"bounded",
			[]string{"kb:write:notes", "kb:write:drafts"},
			[]string{"kb:write:drafts"},
			nil,
			[]string{"kb:write:drafts"},
		},
	} {
		q := launcher.Request{Bundle: path, Base: c.base, Allow: c.allow, Deny: c.deny}
		report, err := l.Launch(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		puts := slices.Contains(c.want, "kb:write:notes")
		if report.Agent != "puts_it" || !slices.Equal(report.Effective, c.want) || (report.Usage.Denied > 0) == puts {
			t.Errorf("%s: %s holds %q, denied %d", c.name, report.Agent, report.Effective, report.Usage.Denied)
		}
		why, err := l.Explain(t.Context(), q, launcher.Query{Text: "kb:write:notes"})
		if err != nil || (why.Decision == "allow") != puts {
			t.Errorf("%s: %+v, %v", c.name, why, err)
		}
	}
	for what, q := range map[string]launcher.Request{
		"policy.caps says":      {Bundle: bundle, Base: []string{"kb:write:notes"}},
		"Base kb:write:nothing": {Bundle: path, Base: []string{"kb:write:nothing"}},
		"Base kb":               {Bundle: path, Base: []string{"kb"}},
	} {
		if _, err := l.Launch(t.Context(), q); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
