package caps

import (
	"fmt"
	"strings"
)

// SourceInput is the word for what an agent is given to do: its input, and the
// next ones of its turns.
const SourceInput = "input"

// sourceWords name the families as what comes of them is named: by settings
// that call it untrusted and by the records of what marked a run.
var sourceWords = [NumFamilies]string{FS: "fs", Net: "http", KBRead: "kb", Exec: "exec", MCP: "mcp", Agents: "agents"}

// SourceWord is the word for what comes of f, such as "http"; the family's key
// where it has none of its own.
func SourceWord(f Family) string {
	if f < NumFamilies && sourceWords[f] != "" {
		return sourceWords[f]
	}
	return f.String()
}

// A Source is something whose content an operator calls untrusted. Grant is the
// zero Grant where Word is [SourceInput].
type Source struct {
	Word  string
	Grant Grant
}

// String is how the settings spell it.
func (s Source) String() string {
	if s.Word == SourceInput {
		return s.Word
	}
	return s.Word + ":" + s.Grant.Scope
}

// ParseSource reads "fs:/path", "exec:/program", "exec:*", "kb:domain", "kb:*"
// and "input". Answers of hosts, MCP servers and agents need not be named: they
// are untrusted as it is.
func ParseSource(s string) (Source, error) {
	if s == SourceInput {
		return Source{Word: s}, nil
	}
	word, scope, _ := strings.Cut(s, ":")
	for _, f := range []Family{FS, Exec, KBRead} {
		if sourceWords[f] != word {
			continue
		}
		if f == FS && scope == "*" {
			return Source{}, fmt.Errorf("%q: write fs:/ for every file", s)
		}
		g, err := parseScope(f, scope, grant)
		if err != nil {
			return Source{}, err
		}
		if f == KBRead && isRaw(scope) {
			return Source{}, fmt.Errorf("%q: name the domain itself; X_raw is a grant beside X", s)
		}
		g.Modes = 1
		return Source{word, g}, nil
	}
	return Source{}, fmt.Errorf("%q is no source: write fs:/absolute/path, exec:/absolute/program, kb:domain or input", s)
}

// ParseTrustedHost reads a host whose answers are believed: "api.example.com",
// "api.example.com:8443" or "*.example.org", over https. Over plain http anybody
// on the way can answer for a host, so that has to be said: "http://10.1.2.3:8080".
func ParseTrustedHost(s string) (Grant, error) {
	scheme, host, given := strings.Cut(s, "://")
	if !given {
		scheme, host = schemes[0], s
	}
	if host == "*" {
		return Grant{}, fmt.Errorf("%q would believe everybody: name the hosts; what a marked run may still do is said by "+
			"caps/profiles/_untrusted.toml", s)
	}
	list, err := netGrants([]string{scheme}, 0xff, host)
	if err != nil {
		return Grant{}, err
	}
	return list[0], nil
}
