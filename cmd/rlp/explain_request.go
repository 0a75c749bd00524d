//go:build !slim

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"runloop.dev/rlp/caps"
)

// requestFlags say of a path or a URL what is asked of it.
type requestFlags struct {
	write, remove bool
	method        string
}

func (f *requestFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&f.write, "write", false, "of a path: to write it")
	fs.BoolVar(&f.remove, "delete", false, "of a path: to remove it")
	fs.StringVar(&f.method, "method", "", "of a URL: by this `METHOD`; otherwise by each")
}

// requestForms says what a REQUEST may be.
const requestForms = `a capability such as kb:write:drafts, a path (with --write or --delete), a URL (with --method), ` +
	`a key of policies or a host call with what it would touch, such as "kb_write drafts" or "kb_put drafts", or a host call alone, such as exec_run`

// readRequest reads what somebody asks about, in any of its forms.
func readRequest(text string, f requestFlags) ([]caps.Request, error) {
	name, rest, two := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case strings.HasPrefix(text, "/") && f.method == "":
		return f.path(text)
	case f.write || f.remove:
		return nil, usagef("--write and --delete are of a path, and %s is none", text)
	case strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://"):
		return f.url(text)
	case f.method != "":
		return nil, usagef("--method is of a URL, and %s is none", text)
	}
	if list, ok, err := byTool(name, rest, two); ok {
		return list, err
	}
	if list, ok, err := byKey(name, rest, two); ok {
		return list, err
	}
	list, err := caps.ParseRequest(text)
	if err != nil {
		return nil, usagef("%w; a REQUEST is %s", err, requestForms)
	}
	return list, nil
}

func (f requestFlags) path(text string) ([]caps.Request, error) {
	path, _, err := caps.CleanPath(text)
	if err != nil && !caps.IsName(caps.FS, text) {
		return nil, usagef("%w", err)
	}
	if err != nil {
		path = text // a file's name may have any character
	}
	var list []caps.Request
	for m, asked := range []bool{caps.Read: !f.write && !f.remove, caps.Write: f.write, caps.Delete: f.remove} {
		if asked {
			list = append(list, caps.Request{Family: caps.FS, Mode: caps.Mode(m), Name: path})
		}
	}
	return list, nil
}

func (f requestFlags) url(text string) ([]caps.Request, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	authority, _, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	host, err := caps.HostPort(scheme, authority)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if f.method == "" {
		return caps.ParseRequest("network:" + scheme + ":" + host)
	}
	m, ok := caps.NetMode(scheme, f.method)
	if !ok {
		return nil, usagef("--method %s: no method of HTTP, such as GET or POST", f.method)
	}
	return []caps.Request{{Family: caps.Net, Mode: m, Name: host}}, nil
}

// byTool reads a host call, alone or with what it would touch.
func byTool(name, rest string, two bool) ([]caps.Request, bool, error) {
	scope, known := caps.ToolScope(name)
	if !known || scope == "" {
		return nil, false, nil
	}
	list := []caps.Request{{Family: caps.Tool, Name: scope}}
	if server, _, ok := strings.Cut(strings.TrimPrefix(scope, "mcp:"), "/"); ok && strings.HasPrefix(scope, "mcp:") {
		list = append(list, caps.Request{Family: caps.MCP, Name: server})
	}
	if i := slices.IndexFunc(caps.Tools(), func(t caps.ToolInfo) bool { return t.Scope() == scope }); i >= 0 && caps.Tools()[i].Family == caps.Time {
		list = append(list, caps.Request{Family: caps.Time, Name: "*"})
	}
	if !two {
		return list, true, nil
	}
	i := slices.IndexFunc(caps.Tools(), func(t caps.ToolInfo) bool { return t.Scope() == scope })
	if i < 0 {
		return nil, true, usagef("%s: what a tool of a bundle or a server touches is not known from its name", name)
	}
	t := caps.Tools()[i]
	f := requestFlags{}
	switch {
	case t.Family == caps.Tool, t.Family == caps.Time:
		return nil, true, usagef("%s touches nothing that has a name", name)
	case t.Family == caps.FS:
		f.remove = t.Name == "path_unlink_file" || t.Name == "path_remove_directory" || t.Name == "path_rename"
		f.write = !f.remove && !slices.Contains([]string{"path_open", "path_filestat_get", "path_readlink"}, t.Name) || t.Name == "path_rename"
		more, err := f.path(rest)
		return append(list, more...), true, err
	case t.Family == caps.Net:
		more, err := f.url(rest)
		return append(list, more...), true, err
	}
	more, err := named(t.Family, rest)
	return append(list, more...), true, err
}

// byKey reads a key of policies with what it would grant.
func byKey(name, rest string, two bool) ([]caps.Request, bool, error) {
	f, known := caps.FamilyOf(name)
	switch {
	case name == "fs_ro" || name == "fs_rw":
		f, known = caps.FS, true
	case !known || !two && f != caps.Time:
		return nil, false, nil
	}
	switch f {
	case caps.FS:
		list, err := requestFlags{write: name == "fs_rw", remove: name == "fs_rw"}.path(rest)
		return list, true, err
	case caps.Net:
		list, err := caps.ParseRequest("net:" + rest)
		return list, true, err
	case caps.Time:
		return []caps.Request{{Family: caps.Time, Name: "*"}}, true, nil
	}
	list, err := named(f, rest)
	return list, true, err
}

// named is a request of a family whose names are plain: a domain of the
// knowledge base may have a key after it, a server a tool.
func named(f caps.Family, name string) ([]caps.Request, error) {
	if f == caps.KBRead || f == caps.KBWrite || f == caps.MCP {
		name, _, _ = strings.Cut(name, "/")
	}
	if !caps.IsName(f, name) {
		return nil, usagef("%q is no name for %s", name, f)
	}
	r := caps.Request{Family: f, Name: name}
	if id, _, bound := strings.Cut(name, "@"); f == caps.Secrets && bound {
		return []caps.Request{{Family: f, Mode: caps.Get, Name: id}, {Family: f, Mode: caps.Use, Name: name}}, nil
	}
	return []caps.Request{r}, nil
}

// about says what is asked for, beside its scope. A tool of which nothing is
// known is of the highest tier.
func about(r caps.Request) string {
	f, known := r.Family, r.Family != caps.Tool
	category, _, _ := strings.Cut(r.Name, ":")
	for _, t := range caps.Tools() {
		if r.Family == caps.Tool && (t.Scope() == r.Name || r.Name == category+":*" && caps.MetadataOf(t.Family).Category == category) {
			f, known = t.Family, true
		}
	}
	if !known && category == caps.MetadataOf(caps.MCP).Category {
		f, known = caps.MCP, true
	}
	if !known {
		return fmt.Sprintf("%s, tier %s, effects not known", category, caps.OperatorSensitive)
	}
	d := caps.MetadataOf(f)
	return fmt.Sprintf("%s, tier %s, effects %s", d.Category, d.Tier, strings.Join(caps.EffectOf(f, r.Mode).Words(), " "))
}
