package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/effect/web"
)

const injectKey = "inject"

// valueMark stands in the header of a route for the value of its secret.
const valueMark = "{secret}"

func injectKeys() []string { return []string{"host", "methods", "path", "header", "secret"} }

// An injection reads one [[inject]] of a base.
type injection struct {
	*report
	t     *tomlfile.Table
	route caps.Route
	good  bool
}

// routes reads the array of tables at inject, each of which is a route; has says
// that the schema of the document has it.
func routes(r *report, e *tomlfile.Entry, has bool) []caps.Route {
	var list []caps.Route
	if !has || !r.is(&e.Value, "[[inject]]", tomlfile.Array) {
		return nil
	}
	for i := range e.Value.Items {
		item := &e.Value.Items[i]
		if !r.is(item, "[[inject]]", tomlfile.TableKind) {
			continue
		}
		in := injection{report: r, t: item.Table, good: true}
		in.route.Pos = place(item.Pos)
		in.read(item.Pos)
		if !in.good {
			continue
		}
		if at := slices.IndexFunc(list, func(o caps.Route) bool { return in.route.Same(&o) }); at >= 0 {
			r.add(item.Pos, CodeRouteTwice, "give each request one header and one secret",
				"%s has a route of this host, path and method", list[at].Pos)
			continue
		}
		list = append(list, in.route)
	}
	return list
}

func (in *injection) read(pos tomlfile.Pos) {
	in.known(in.t, "[[inject]]", injectKeys())
	var missing []string
	for _, key := range injectKeys() {
		if _, there := in.t.Get(key); !there {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		in.good = false
		in.add(pos, CodeMissing, `host = "api.example.com", methods = ["POST"], path = "/v1/*", header = "X-Api-Key", `+
			`secret = "runloop/api/key"`, "[[inject]] has no %s", strings.Join(missing, ", "))
		return
	}
	in.text("host", CodeBadHost, func(s string) (err error) {
		in.route.Host, err = caps.RouteHost(s)
		return err
	})
	in.text("path", CodeBadPath, func(s string) error {
		in.route.Path = s
		return caps.RoutePattern(s)
	})
	in.text("header", CodeBadName, in.header)
	in.text("secret", CodeBadSecretID, func(s string) (err error) {
		in.route.Secret, err = caps.SecretID(s)
		return err
	})
	in.methods()
}

// text reads a key that is a text, by a function that says what is wrong with it.
func (in *injection) text(key string, code Code, read func(s string) error) {
	e, _ := in.t.Get(key)
	if !in.is(&e.Value, key, tomlfile.String) {
		in.good = false
		return
	}
	if err := read(e.Value.Str); err != nil {
		in.good = false
		in.add(e.Value.Pos, code, "", "%s of [[inject]]: %v", key, err)
	}
}

// header reads a name alone, or a name and what it says with the value in it.
func (in *injection) header(s string) error {
	name, text, says := strings.Cut(s, ":")
	if !says {
		text = valueMark
	}
	text = strings.Trim(text, " ")
	before, after, marked := strings.Cut(text, valueMark)
	if !marked || strings.Contains(after, valueMark) {
		return fmt.Errorf("write a name, or as in \"Authorization: Bearer %s\", with %s once", valueMark, valueMark)
	}
	if strings.Contains(name, "_") {
		return fmt.Errorf("write %q: servers take _ for -", strings.ReplaceAll(name, "_", "-"))
	}
	if err := web.CheckHeader(name, []string{before, after}); err != nil {
		return err
	}
	in.route.Header, in.route.Before, in.route.After = web.Dashed(name), before, after
	return nil
}

func (in *injection) methods() {
	e, _ := in.t.Get("methods")
	if !in.is(&e.Value, "methods", tomlfile.Array) {
		in.good = false
		return
	}
	if len(e.Value.Items) == 0 {
		in.good = false
		in.add(e.Value.Pos, CodeMissing, `methods = ["POST"]`, "a route without methods takes no request")
	}
	for i := range e.Value.Items {
		item := &e.Value.Items[i]
		mode, _ := caps.NetMode("https", item.Str)
		switch {
		case !in.is(item, "methods["+strconv.Itoa(i)+"]", tomlfile.String):
		case !slices.Contains(methodNames(), item.Str):
			in.add(item.Pos, CodeBadMethod, "one of "+strings.Join(methodNames(), ", "),
				"%q is not a method that can be granted by itself", item.Str)
		case in.route.Methods.Has(mode):
			in.add(item.Pos, CodeDuplicate, "", "%q is there already", item.Str)
			continue
		default:
			in.route.Methods |= 1 << mode
			continue
		}
		in.good = false
	}
}

// methodNames are the methods with a mode of their own. All others share one, so
// that naming one of them would grant the rest along with it.
func methodNames() []string {
	return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
}
