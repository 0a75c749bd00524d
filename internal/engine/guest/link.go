package guest

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/engine/abi"
)

// ImportError refuses a module for one of its imports.
type ImportError struct {
	Import
	Reason  string // what is wrong with it
	Nearest string // a function that is known and reads almost so; may be ""
}

func (e *ImportError) Error() string {
	text := fmt.Sprintf("import %s.%s: %s", word(e.Module), word(e.Name), e.Reason)
	if e.Nearest != "" {
		text += fmt.Sprintf(" (nearest known: %s)", e.Nearest)
	}
	return text
}

// word is a name that a module made up, as a message may show it: as it is when
// it is an ordinary one, quoted and cut otherwise.
func word(name string) string {
	const most = 80
	ordinary := strings.IndexFunc(name, func(r rune) bool {
		return r > '~' || r <= ' ' || r == '"' || r == '\\'
	}) < 0
	if ordinary && len(name) <= most && name != "" {
		return name
	}
	if len(name) > most {
		return fmt.Sprintf("%.*q...", most, name)
	}
	return fmt.Sprintf("%q", name)
}

// Unwrap is [ErrModule].
func (e *ImportError) Unwrap() error { return ErrModule }

// Check refuses what [Compile] would refuse of cfg without compiling anything:
// a binary that is none, a component, an import that is not there, too much of
// anything.
func Check(cfg Config) error {
	s, err := scan(cfg.Module)
	if err != nil {
		return fmt.Errorf("checking %s: %w", cfg.Name, err)
	}
	if _, err := link(s.imports, cfg.Funcs); err != nil {
		return fmt.Errorf("checking %s: %w", cfg.Name, err)
	}
	if err := s.check(&cfg); err != nil {
		return fmt.Errorf("checking %s: %w", cfg.Name, err)
	}
	return nil
}

// link finds the function behind each import. The result holds each once, in
// the order of the first use.
func link(imports []Import, known []abi.Func) ([]abi.Func, error) {
	byName := make(map[string]abi.Func, len(known))
	for _, f := range known {
		key := f.Module + "." + f.Name
		if _, twice := byName[key]; twice {
			return nil, fmt.Errorf("linking: two functions are called %s", key)
		}
		byName[key] = f
	}
	var out []abi.Func
	linked := map[string]bool{}
	for _, i := range imports {
		if i.Kind != "function" {
			return nil, &ImportError{Import: i, Reason: "a guest brings its own " + i.Kind + ", only functions are linked"}
		}
		key := i.Module + "." + i.Name
		f, ok := byName[key]
		if !ok {
			return nil, &ImportError{Import: i, Reason: "unknown function", Nearest: nearest(key, known)}
		}
		if !slices.Equal(f.Params, i.Params) || !slices.Equal(f.Results, i.Results) {
			reason := fmt.Sprintf("signature is %s, want %s", signature(i.Params, i.Results), signature(f.Params, f.Results))
			return nil, &ImportError{Import: i, Reason: reason}
		}
		if !linked[key] {
			linked[key] = true
			out = append(out, f)
		}
	}
	return out, nil
}

func signature(params, results []abi.Type) string {
	return "(" + typeNames(params) + ") -> (" + typeNames(results) + ")"
}

func typeNames(list []abi.Type) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = typeName(t)
	}
	return strings.Join(names, " ")
}

func typeName(t abi.Type) string {
	switch t {
	case abi.I32:
		return "i32"
	case abi.I64:
		return "i64"
	case 0x7d:
		return "f32"
	case 0x7c:
		return "f64"
	}
	return fmt.Sprintf("type 0x%02x", byte(t))
}

// nearest is the known function whose name differs least from key, when that
// is little enough to be a slip.
func nearest(key string, known []abi.Func) string {
	best, least := "", len(key)/3+1
	for _, f := range known {
		name := f.Module + "." + f.Name
		if d := distance(key, name, least); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is Levenshtein's, or limit when it is no less.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return min(row[len(b)], limit)
}
