package policy_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// files is a machine with these paths; a trailing slash makes a folder.
type files []string

func (f files) stat(path string) (fs.FileInfo, error) {
	for _, p := range f {
		if strings.TrimSuffix(p, "/") == path {
			return info{path, strings.HasSuffix(p, "/")}, nil
		}
	}
	return nil, fs.ErrNotExist
}

type info struct {
	name string
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return 0 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

var options = policy.Options{
	Home: "/home/op",
	Template: func(name string) ([]byte, error) {
		switch name {
		case "mail-sender":
			return []byte("[capabilities]\nkb_write = [\"drafts\"]\nnet = [\"mail.example.com\"]\n[limits]\nhostcalls_max = 50\n"), nil
		case "broken":
			return []byte("[capabilities]\nfsx = []\n"), nil
		case "nested":
			return []byte("schema = \"0.2\"\ntemplates = [\"mail-sender\"]\n"), nil
		case "syntax":
			return []byte("= broken\n"), nil
		case "placed":
			return []byte("schema = \"0.2\"\n[capabilities]\nfs = [\"{notes}/a\"]\n"), nil
		case "unreadable":
			return nil, errors.New("permission denied")
		}
		return nil, fs.ErrNotExist
	},
}

// base parses text as a base and makes a set of it.
func base(t testing.TB, text string) caps.Set {
	t.Helper()
	b, findings := policy.ParseBase("policy.caps", []byte(text), options)
	if b == nil {
		t.Fatalf("base %q: %v", text, findings)
	}
	set, err := caps.Base(b.Entries, b.Limits)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// layer parses text as an override.
func layer(t testing.TB, text string) *caps.Layer {
	t.Helper()
	o, findings := policy.ParseLayer("override:writer.toml", "writer.toml", []byte(text), options)
	if o == nil {
		t.Fatalf("layer %q: %v", text, findings)
	}
	return o.Layer
}

func narrow(t testing.TB, set caps.Set, l *caps.Layer) (caps.Set, []caps.Change) {
	t.Helper()
	out, changes, err := set.Narrow(l)
	if err != nil {
		t.Fatal(err)
	}
	return out, changes
}

// allows asks for every request that a capability string stands for.
func allows(t testing.TB, set caps.Set, capability string) bool {
	t.Helper()
	reqs, err := caps.ParseRequest(capability)
	if err != nil || len(reqs) == 0 {
		t.Fatalf("%q: %v", capability, err)
	}
	return !slices.ContainsFunc(reqs, func(r caps.Request) bool { return !set.Check(r).Allow })
}

// errorsOf are the findings that refuse a document.
func errorsOf(findings []policy.Finding) []policy.Finding {
	var out []policy.Finding
	for _, f := range findings {
		if f.Severity == policy.SeverityError {
			out = append(out, f)
		}
	}
	return out
}

func has(findings []policy.Finding, code policy.Code) bool {
	return slices.ContainsFunc(findings, func(f policy.Finding) bool { return f.Code == code })
}
