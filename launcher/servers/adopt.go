package servers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/launcher/compose"
)

// Options say whose settings are looked at, and how its servers are to be started.
type Options struct {
	Home     home.Home
	HomeFlag string // of the home, where it is not the usual one; "" otherwise
	Config   config.Config
	Path     string // of the client's settings, absolute
	Client   string // "": by the path
	Self     string // the absolute path of rlp
	Look     func(name string) (path string, err error)
}

// An Adoption is what a client's settings would become.
type Adoption struct {
	Path    string    `json:"path"`
	Client  string    `json:"client"`
	Servers []Adopted `json:"servers"`
	Hunks   []Hunk    `json:"-"`
	Written bool      `json:"written"`

	home     home.Home
	real     string // the file itself, where Path is a link
	mode     os.FileMode
	old, new []byte
	hidden   []value
}

// planning is the making of one.
type planning struct {
	Options
	client client
	data   []byte
	plain  []byte
	names  map[string]bool
}

// Plan reads the settings of a client and says what they would become, and changes
// nothing.
func Plan(o Options) (*Adoption, error) {
	c, err := clientOf(o.Client, o.Path)
	if err != nil {
		return nil, err
	}
	a := &Adoption{Path: o.Path, Client: c.name, Servers: []Adopted{}, home: o.Home}
	if err := a.read(); err != nil {
		return nil, err
	}
	p := &planning{Options: o, client: c, data: a.old, plain: c.plain(a.old), names: map[string]bool{}}
	root, err := c.parse(o.Path, a.old)
	if err != nil {
		return nil, input(err)
	}
	places, err := c.places(root)
	if err != nil {
		return nil, err
	}
	for _, at := range places {
		p.known(at)
	}
	var edits []edit
	want := root.Plain()
	for _, at := range places {
		s, from, err := p.adopt(at)
		if err != nil {
			return nil, err
		}
		if s.State == "wrapped" {
			edits = append(edits, p.edits(s, from)...)
			expect(want, at, s, from)
			a.hidden = append(a.hidden, s.values...)
		}
		a.Servers = append(a.Servers, *s)
	}
	a.new = apply(a.old, edits)
	now, err := c.parse(o.Path, a.new)
	if err != nil || !reflect.DeepEqual(now.Plain(), want) {
		return nil, input(&tomlfile.Error{
			Pos: tomlfile.Pos{File: o.Path}, Msg: "its servers cannot be changed without rewriting what stands there",
			Hint: "write each with command and args on lines of their own, or wrap them by hand",
		})
	}
	var spans [][2]int
	for _, v := range a.hidden {
		spans = append(spans, v.span)
	}
	a.Hunks = hunks(a.old, edits, spans)
	return a, nil
}

// read reads the settings, which may be reached by a link.
func (a *Adoption) read() error {
	var err error
	if a.real, err = filepath.EvalSymlinks(a.Path); err != nil {
		return input(err)
	}
	info, err := os.Stat(a.real)
	if err != nil {
		return input(err)
	}
	if !info.Mode().IsRegular() || info.Size() > mostSettings {
		return input(fmt.Errorf("%s: no file of settings: it has to be a regular file of at most %d MiB", a.Path,
			mostSettings>>20))
	}
	a.mode = info.Mode().Perm()
	a.old, err = os.ReadFile(a.real)
	return input(err)
}

// known notes the name of a server that is adopted already.
func (p *planning) known(at place) {
	s, err := settingsOf(at)
	if err != nil || !isOurs(s.command.Value.Str, s.arguments()) {
		return
	}
	args := s.arguments()
	if i := slices.Index(args, "wrap") + 1; i < len(args) {
		p.names[args[i]] = true
	}
}

// edits are those of one server.
func (p *planning) edits(a *Adopted, s *settings) []edit {
	start, end := s.command.Value.Span()
	edits := []edit{{start, end, tomlfile.Literal(a.start[0])}}
	given := len(a.start) - 1 - len(s.arguments())
	var items []string
	for _, arg := range a.start[1 : 1+given] {
		items = append(items, tomlfile.Literal(arg))
	}
	switch at := s.command.Start(); {
	case s.args != nil:
		edits = append(edits, before(p.plain, &s.args.Value, items))
	case p.client.toml && len(bytes.TrimSpace(p.data[lineStart(p.data, at):at])) == 0: // under a header
		edits = append(edits, edit{at, at, "args = [" + strings.Join(items, ", ") + "]\n"})
	case p.client.toml:
		edits = append(edits, edit{end, end, ", args = [" + strings.Join(items, ", ") + "]"})
	default:
		indent := string(p.data[lineStart(p.data, at):at])
		sep := " "
		if strings.TrimSpace(indent) == "" {
			sep = "\n" + indent
		}
		edits = append(edits, edit{end, end, "," + sep + `"args": [` + strings.Join(items, ", ") + "]"})
	}
	if len(a.values) == 0 {
		return edits
	}
	gone := map[string]bool{}
	for _, v := range a.values {
		gone[v.variable] = true
	}
	return append(edits, without(p.data, p.plain, s.env, gone)...)
}

// expect makes in the tree of a document the change that edits make in its text.
func expect(root map[string]any, at place, a *Adopted, s *settings) {
	of := root
	for _, key := range at.path {
		of, _ = of[key].(map[string]any)
	}
	command := "command"
	if nested, old := of["command"].(map[string]any); old {
		of, command = nested, "path"
	}
	args := []any{}
	for _, arg := range a.start[1:] {
		args = append(args, arg)
	}
	of[command], of["args"] = a.start[0], args
	env, _ := of["env"].(map[string]any)
	for _, v := range a.values {
		delete(env, v.variable)
	}
}

// Changed reports whether the settings would be others.
func (a *Adoption) Changed() bool { return !bytes.Equal(a.old, a.new) }

func usage(format string, args ...any) error {
	return &compose.Error{Status: 2, Err: fmt.Errorf(format, args...)}
}
