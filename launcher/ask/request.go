package ask

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/places"
)

// RequestForms says what the text of a [Query] may be.
const RequestForms = `a capability such as kb:write:drafts, a path (with --write or --delete), a URL (with --method), ` +
	`a key of policies or a host call with what it would touch, such as "kb_write drafts" or "kb_put drafts", or a host call alone, such as exec_run, ` +
	`or what the log says, such as time.now or "kb.write drafts/a"`

// Check refuses a question that asks about nothing that there could be.
func (q Query) Check() error {
	_, err := q.requests()
	return err
}

// requests are what q asks about.
func (q Query) requests() ([]caps.Request, error) {
	text := q.Text
	name, rest, two := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case strings.HasPrefix(text, "/") && q.Method == "":
		return q.path(text)
	case q.Write || q.Remove:
		return nil, usagef("--write and --delete are of a path, and %s is none", text)
	case strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "tcp://"):
		return q.url(text)
	case q.Method != "":
		return nil, usagef("--method is of a URL, and %s is none", text)
	}
	if list, ok, err := byTool(name, rest, two); ok {
		return list, err
	}
	if list, ok, err := byKey(name, rest, two); ok {
		return list, err
	}
	if asked := About(&audit.DecisionRecord{Cap: name, Target: rest}); strings.Contains(name, ".") && asked != "" {
		q.Text = asked
		return q.requests()
	}
	list, err := caps.ParseRequest(text)
	if err != nil {
		return nil, usagef("%w; a REQUEST is %s", err, RequestForms)
	}
	return list, nil
}

// requests are what q asks about of s: a path may begin with a placeholder. A path
// is told to who does not operate as the policy writes it; what a placeholder stands
// for, and where a link leads, is not, nor is whether a path is that.
func (s *Subject) requests(q Query) ([]caps.Request, error) {
	before, tail, _ := strings.Cut(q.Text, "{")
	name, rest, _ := strings.Cut(tail, "}")
	if list, is, err := s.onRoute(q); is {
		return list, err
	}
	value, filled := s.Params[name]
	filled = filled && !q.recorded
	if filled = filled && (before == "" || strings.HasSuffix(before, ":") || strings.HasSuffix(before, " ")); filled {
		q.Text = before + value + rest
	}
	list, err := q.requests()
	if err != nil || filled || s.names == nil || q.Run != "" { // records of a run tell its paths
		return list, err
	}
	if last := list[len(list)-1]; last.Family == caps.FS {
		err = s.nameable(q.Text, last.Name)
	}
	return list, err
}

// nameable refuses a path that lies below none of those that whoever does not
// operate is told, where any is told by another name than its own.
func (s *Subject) nameable(text, path string) error {
	var told []string
	hidden := false
	for _, e := range s.Policy.Base {
		if e.Grant.Family != caps.FS {
			continue
		}
		scope := s.names.Path(e.Grant.Scope)
		if _, is := places.Below(path, scope); is || scope == "/" {
			return nil
		}
		hidden = hidden || scope != e.Grant.Scope
		told = append(told, scope)
	}
	if !hidden {
		return nil
	}
	return usagef("%s: only who operates may ask about any path of this agent; ask about one at or below %s, or about "+
		"a recorded run", text,
		strings.Join(slices.Compact(told), ", "))
}

func (q Query) path(text string) ([]caps.Request, error) {
	path, _, err := caps.CleanPath(text)
	if err != nil && !caps.IsName(caps.FS, text) {
		return nil, usagef("%w", err)
	}
	if err != nil {
		path = text // a file's name may have any character
	}
	var list []caps.Request
	for m, asked := range []bool{caps.Read: !q.Write && !q.Remove, caps.Write: q.Write, caps.Delete: q.Remove} {
		if asked {
			list = append(list, caps.Request{Family: caps.FS, Mode: caps.Mode(m), Name: path})
		}
	}
	return list, nil
}

func (q Query) url(text string) ([]caps.Request, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	authority, _, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	if scheme == "tcp" {
		list, err := caps.ParseRequest("network:tcp:" + authority)
		if err == nil && q.Method != "" {
			err = errors.New("--method: bytes over TCP have none")
		}
		if err != nil {
			return nil, usagef("%w", err)
		}
		return list, nil
	}
	host, err := caps.HostPort(scheme, authority)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if q.Method == "" {
		return caps.ParseRequest("network:" + scheme + ":" + host)
	}
	m, ok := caps.NetMode(scheme, q.Method)
	if !ok {
		return nil, usagef("--method %s: no method of HTTP, such as GET or POST", q.Method)
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
	if i := slices.IndexFunc(caps.Tools(), func(t caps.ToolInfo) bool { return t.Scope() == scope }); i >= 0 &&
		caps.Tools()[i].Family == caps.Time {
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
	q := Query{}
	switch {
	case t.Family == caps.Tool, t.Family == caps.Time:
		return nil, true, usagef("%s touches nothing that has a name", name)
	case t.Family == caps.FS:
		q.Remove = t.Name == "path_unlink_file" || t.Name == "path_remove_directory" || t.Name == "path_rename"
		q.Write = !q.Remove && !slices.Contains([]string{"path_open", "path_filestat_get", "path_readlink"}, t.Name) ||
			t.Name == "path_rename"
		more, err := q.path(rest)
		return append(list, more...), true, err
	case t.Family == caps.Net:
		more, err := q.url(rest)
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
		list, err := Query{Write: name == "fs_rw", Remove: name == "fs_rw"}.path(rest)
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
		if r.Family == caps.Tool && (t.Scope() == r.Name || r.Name == category+":*" &&
			caps.MetadataOf(t.Family).Category == category) {
			f, known = t.Family, true
		}
	}
	if !known && category == caps.MetadataOf(caps.MCP).Category {
		f, known = caps.MCP, true
	}
	if !known {
		return fmt.Sprintf("category %s, tier %s, effects not known", category, caps.OperatorSensitive)
	}
	d := caps.MetadataOf(f)
	return fmt.Sprintf("category %s, tier %s, effects %s", d.Category, d.Tier, strings.Join(caps.EffectOf(f, r.Mode).Words(), " "))
}
