package secrets

import (
	"context"
	"strings"
)

// EnvPrefix begins the names of the variables that hold secrets. No agent and
// no program that one starts is ever given a variable of such a name.
const EnvPrefix = "RLP_SECRET_"

// EnvName is the variable that holds the secret id of a tenant: the prefix,
// tenant, scope and name with "_0" between them. Letters and digits stand for
// themselves; "_" is written "__", "-" is "_1" and "." is "_2". Every "_" begins
// a pair, so that no two secrets of any two tenants have one name.
func EnvName(tenant string, id ID) string {
	var b strings.Builder
	b.WriteString(EnvPrefix)
	for i, word := range []string{tenant, id.scope, id.name} {
		if i > 0 {
			b.WriteString("_0")
		}
		for j := range len(word) {
			switch c := word[j]; c {
			case '_':
				b.WriteString("__")
			case '-':
				b.WriteString("_1")
			case '.':
				b.WriteString("_2")
			default:
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}

// ParseEnvName is the inverse of [EnvName]; ok is false for every other text.
func ParseEnvName(s string) (tenant string, id ID, ok bool) {
	rest := strings.TrimPrefix(s, EnvPrefix) // a name without it is not what comes of its words
	words, word := []string{}, []byte{}
	for i := 0; i < len(rest); i++ {
		if rest[i] != '_' {
			word = append(word, rest[i])
			continue
		}
		if i++; i == len(rest) {
			return "", ID{}, false
		}
		switch rest[i] {
		case '_':
			word = append(word, '_')
		case '1':
			word = append(word, '-')
		case '2':
			word = append(word, '.')
		case '0':
			words, word = append(words, string(word)), []byte{}
		default:
			return "", ID{}, false
		}
	}
	words = append(words, string(word))
	if len(words) != 3 {
		return "", ID{}, false
	}
	id, err := ParseID("runloop/" + words[1] + "/" + words[2])
	if err != nil || EnvName(words[0], id) != s {
		return "", ID{}, false
	}
	return words[0], id, true
}

// environment reads secrets from variables that were set before rlp began.
type environment struct {
	tenant string
	env    []string
}

func (e *environment) Get(_ context.Context, id ID) ([]byte, error) {
	name := EnvName(e.tenant, id)
	for _, kv := range e.env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return []byte(v), nil
		}
	}
	return nil, notThere(id)
}

func (e *environment) Put(_ context.Context, id ID, _ []byte) error {
	return &UnavailableError{Provider: "env", Why: "it only reads; set " + EnvName(e.tenant, id) +
		" in the environment of rlp"}
}

func (e *environment) Delete(_ context.Context, id ID) error {
	return &UnavailableError{Provider: "env", Why: "it only reads; unset " + EnvName(e.tenant, id) +
		" in the environment of rlp"}
}

func (e *environment) List(context.Context) ([]ID, error) {
	var ids []ID
	for _, kv := range e.env {
		name, _, _ := strings.Cut(kv, "=")
		if tenant, id, _ := ParseEnvName(name); tenant == e.tenant {
			ids = append(ids, id)
		}
	}
	return sortIDs(ids), nil
}
