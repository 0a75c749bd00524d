package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/secrets"
)

// An Adopted is one server of a client, and what becomes of it.
type Adopted struct {
	Key   string   `json:"key"` // its own name, and the keys before it
	Line  int      `json:"line"`
	Name  string   `json:"name,omitempty"`  // by which rlp knows it
	State string   `json:"state"`           // "wrapped", "already" or "left"
	Why   string   `json:"why,omitempty"`   // it is left
	Notes []string `json:"notes,omitempty"` // what its operator should know
	// Policy is the file of what it may have, and Secrets are the ids of what goes into
	// the vault.
	Policy  string   `json:"policy,omitempty"`
	Secrets []string `json:"secrets,omitempty"`

	command   string
	files     []string
	variables []string
	values    []value
	start     []string // the command and arguments by which its client starts it
}

// A value goes into the vault.
type value struct {
	id       secrets.ID
	variable string
	text     string
	span     [2]int // where it stands in the file, in quotes
}

// errLeft is a server that stays as it is.
type errLeft string

func (e errLeft) Error() string { return string(e) }

// settings are where a server says how it is started.
type settings struct {
	of      *tomlfile.Table
	command *tomlfile.Entry
	args    *tomlfile.Entry // nil: none
	env     *tomlfile.Table // nil: none
}

// settingsOf reads an entry. An older form of Zed's has it all below command.
func settingsOf(at place) (settings, error) {
	s := settings{of: at.entry.Value.Table}
	e, ok := s.of.Get("command")
	name := "command"
	if ok && e.Value.Kind == tomlfile.TableKind {
		s.of = e.Value.Table
		e, ok = s.of.Get("path")
		name = "command.path"
	}
	if !ok {
		if _, remote := s.of.Get("url"); remote {
			return s, errLeft("it is at a URL; rlp mcp wrap NAME --url URL stands in front of it")
		}
		return s, errLeft("it has no command")
	}
	if s.command = e; e.Value.Kind != tomlfile.String {
		return s, wrong(e, append(slices.Clone(at.path), name), "is %s; a string is wanted", e.Value.Kind)
	}
	if e, ok := s.of.Get("args"); ok {
		s.args = e
		list := e.Value.Kind == tomlfile.Array
		if !list || slices.ContainsFunc(e.Value.Items, func(v tomlfile.Value) bool { return v.Kind != tomlfile.String }) {
			return s, wrong(e, append(slices.Clone(at.path), "args"), "must be a list of strings")
		}
	}
	if e, ok := s.of.Get("env"); ok && e.Value.Kind != tomlfile.Null {
		if e.Value.Kind != tomlfile.TableKind {
			return s, wrong(e, append(slices.Clone(at.path), "env"), "is %s; an object is wanted", e.Value.Kind)
		}
		s.env = e.Value.Table
	}
	return s, nil
}

func (s *settings) arguments() []string {
	var list []string
	if s.args != nil {
		for _, v := range s.args.Value.Items {
			list = append(list, v.Str)
		}
	}
	return list
}

// isOurs reports whether a command with its arguments is rlp mcp wrap already.
func isOurs(command string, args []string) bool {
	i := slices.Index(args, "mcp")
	base := strings.TrimSuffix(filepath.Base(command), ".exe")
	return base == "rlp" && i >= 0 && i+1 < len(args) && args[i+1] == "wrap"
}

// adopt says what becomes of one server.
func (p *planning) adopt(at place) (*Adopted, *settings, error) {
	a := &Adopted{Key: strings.Join(at.path, "."), Line: at.entry.Pos.Line, State: "wrapped"}
	s, err := settingsOf(at)
	if err == nil && isOurs(s.command.Value.Str, s.arguments()) {
		a.State = "already"
		return a, nil, nil
	}
	if err == nil {
		err = p.fill(a, at, &s)
	}
	var left errLeft
	if errors.As(err, &left) {
		return &Adopted{Key: a.Key, Line: a.Line, State: "left", Why: left.Error()}, nil, nil
	}
	return a, &s, err
}

func (p *planning) fill(a *Adopted, at place, s *settings) (err error) {
	if a.command, err = p.program(s.command.Value.Str); err != nil {
		return err
	}
	if a.Name, err = p.name(at); err != nil {
		return err
	}
	args := s.arguments()
	for _, arg := range args {
		switch {
		case filepath.IsAbs(arg) && filepath.Clean(arg) == arg:
			if _, err := os.Stat(arg); err == nil {
				a.files = append(a.files, codeOf(arg))
			}
		case strings.HasPrefix(arg, "./"), strings.HasPrefix(arg, "../"), strings.Contains(arg, "${"):
			a.note("%s is no absolute path, and leads elsewhere in a sandbox or nowhere; write one", arg)
		case looksSecret("", arg):
			a.note("an argument looks like a token; the processes of this machine show it, so give it as a variable if the " +
				"server takes one")
		}
	}
	slices.Sort(a.files)
	a.files = slices.Compact(a.files)
	p.environment(a, s)
	a.Policy = filepath.Join(p.Home.Servers(), a.Name+".toml")
	for _, v := range a.values {
		a.Secrets = append(a.Secrets, v.id.String())
	}
	a.start = p.started(a, args)
	return nil
}

// codeOf is the folder of what a script is made of, and any other path itself.
func codeOf(path string) string {
	if !slices.Contains([]string{".js", ".mjs", ".cjs", ".ts", ".py"}, filepath.Ext(path)) {
		return path
	}
	const modules = "/node_modules/"
	if i := strings.Index(path, modules); i >= 0 {
		return path[:i+len(modules)-1]
	}
	for dir := filepath.Dir(path); strings.Count(dir, "/") > 1; dir = filepath.Dir(dir) {
		for _, name := range []string{"package.json", "pyproject.toml"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return dir
			}
		}
	}
	return path
}

func (a *Adopted) note(format string, args ...any) {
	a.Notes = append(a.Notes, fmt.Sprintf(format, args...))
}

// program is the absolute path of a command.
func (p *planning) program(command string) (string, error) {
	switch base := filepath.Base(command); {
	case strings.Contains(command, "${"):
		return "", errLeft("its command has a variable of the client in it; write the path of the program")
	case base == "docker" || base == "podman":
		return "", errLeft("containers are not started by " + base + " but by a service outside of every sandbox")
	case filepath.IsAbs(command):
		return filepath.Clean(command), nil
	case strings.Contains(command, "/"):
		return "", errLeft("its command is a relative path; write an absolute one")
	}
	path, err := p.Look(command)
	if err != nil {
		return "", errLeft("its program " + command + " is not found; install it, or write its path")
	}
	return path, nil
}

// name is the id by which rlp knows a server.
func (p *planning) name(at place) (string, error) {
	key := at.path[len(at.path)-1]
	agent, err := ident.AgentOf(key)
	if err != nil {
		return "", wrong(at.entry, at.path, "cannot be an agent's id: %v; give the server a shorter name", err)
	}
	name := agent.String()
	if _, taken := p.Config.MCP[name]; taken || name == "tools" {
		name = "mcp_" + name
	}
	for i, base := 2, name; p.names[name]; i++ { // of another project
		name = fmt.Sprintf("%s_%d", base, i)
	}
	p.names[name] = true
	if _, err := ident.ParseAgent(name); err != nil {
		return "", wrong(at.entry, at.path, "cannot be an agent's id: %v; give the server a shorter name", err)
	}
	return name, nil
}

// environment parts the variables of a server: tokens go into the vault, and the
// others stay with the client, which passes them to rlp.
func (p *planning) environment(a *Adopted, s *settings) {
	if e, ok := s.of.Get("env_vars"); ok { // Codex: names of its own
		for _, v := range e.Value.Items {
			if caps.IsName(caps.Env, v.Str) {
				a.variables = append(a.variables, v.Str)
			}
		}
	}
	if _, ok := s.of.Get("envFile"); ok {
		a.note("variables of envFile reach the server only where env of %s names them", a.Name+".toml")
	}
	if s.env == nil {
		return
	}
	for i := range s.env.Entries {
		e := &s.env.Entries[i]
		if !caps.IsName(caps.Env, e.Key) || e.Value.Kind == tomlfile.Null {
			continue
		}
		start, end := e.Value.Span()
		id, err := secrets.ParseID("runloop/" + a.Name + "/" + strings.ToLower(e.Key))
		secret := e.Value.Kind == tomlfile.String && !strings.Contains(e.Value.Str, "${") && looksSecret(e.Key, e.Value.Str)
		asWritten := string(p.data[start:end]) == tomlfile.Literal(e.Value.Str) // so that it can be put back to the byte
		if secret && (err != nil || !asWritten || secrets.CheckValue([]byte(e.Value.Str)) != nil) {
			a.note("%s looks like a token and stays where it is: the vault cannot give it back as it is written", e.Key)
			secret = false
		}
		if !secret {
			a.variables = append(a.variables, e.Key)
			continue
		}
		a.values = append(a.values, value{id, e.Key, e.Value.Str, [2]int{start, end}})
	}
}

// looksSecret reports whether a variable, or a text without one, may be a token: by
// its name, by a password in an address, or because it is long and no word or path.
func looksSecret(name, text string) bool {
	upper := strings.ToUpper(name)
	for _, word := range []string{
		"TOKEN", "KEY", "SECRET", "PASSW", "PASSPHRASE", "PWD", "CREDENTIAL", "AUTH", "COOKIE", "DSN",
	} {
		if name != "" && strings.Contains(upper, word) {
			return true
		}
	}
	if _, rest, isURL := strings.Cut(text, "://"); isURL {
		user, _, at := strings.Cut(rest, "@")
		return at && strings.Contains(user, ":")
	}
	const shortest = 20
	letters, digits := false, false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r), r == '/', r == '.', r == '@', r == '$':
			return false
		case unicode.IsDigit(r):
			digits = true
		case unicode.IsLetter(r):
			letters = true
		}
	}
	return len(text) >= shortest && letters && digits
}

// started is how a client starts a server from now on.
func (p *planning) started(a *Adopted, args []string) []string {
	list := []string{p.Self}
	if p.HomeFlag != "" {
		list = append(list, "--home", p.HomeFlag)
	}
	if t := p.Home.Tenant(); t != "default" {
		list = append(list, "--tenant", t)
	}
	list = append(list, "mcp", "wrap", a.Name, "--policy", a.Policy)
	for _, v := range a.values {
		list = append(list, "--secret", v.variable+"="+v.id.String())
	}
	return append(append(list, "--", a.command), args...)
}
