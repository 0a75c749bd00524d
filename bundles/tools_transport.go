package bundles

import (
	"net/url"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// transport reads how a tool is called. Arguments of a call never become a part
// of the command or of the URL's place: what is judged is what stands here.
func (p *toolsParser) transport(t *tomlfile.Table, tool *Tool) {
	p.Need(t, "kind")
	kind, ok := p.String(t, "kind")
	switch {
	case kind == "exec":
		p.program(t, tool)
	case kind == "http":
		p.request(t, tool)
	case ok:
		e, _ := t.Get("kind")
		p.Errorf(e.Value.Pos, `write "exec" or "http"`, "kind: there is no transport %s", quote(kind))
	}
}

func (p *toolsParser) program(t *tomlfile.Table, tool *Tool) {
	p.Known(t, "kind", "command", "args", "env", "timeout_ms")
	p.Need(t, "command")
	x := &ToolProgram{Pos: t.Pos, Timeout: p.timeout(t)}
	if command, ok := p.String(t, "command"); ok {
		e, _ := t.Get("command")
		x.Command, x.Pos = command, e.Value.Pos
		if clean, _, err := caps.CleanPath(command); err != nil || clean != command || !caps.IsName(caps.Exec, command) {
			p.Errorf(x.Pos, `such as "/usr/bin/grep"`, "command: %s is not the absolute path of a program", quote(command))
		}
	}
	x.Args, _ = p.Strings(t, "args")
	for i, a := range x.Args {
		if strings.IndexByte(a, 0) >= 0 || strings.Contains(a, secretMark) {
			e, _ := t.Get("args")
			p.Errorf(e.Value.Pos, "secrets go into env", "args[%d]: has a NUL or the place of a secret in it", i)
		}
	}
	x.Env = p.fields(t, "env", tool, func(name string) string {
		if !caps.IsName(caps.Env, name) {
			return "is not the name of a variable"
		}
		return ""
	})
	tool.Exec = x
}

func (p *toolsParser) request(t *tomlfile.Table, tool *Tool) {
	p.Known(t, "kind", "method", "url", "headers", "timeout_ms")
	p.Need(t, "url")
	r := &ToolRequest{Method: "POST", Pos: t.Pos, Timeout: p.timeout(t)}
	if method, ok := p.String(t, "method"); ok {
		r.Method = method
		if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, method) {
			e, _ := t.Get("method")
			p.Errorf(e.Value.Pos, "GET, HEAD, POST, PUT, PATCH or DELETE", "method: %s cannot be sent", quote(method))
		}
	}
	if raw, ok := p.String(t, "url"); ok {
		e, _ := t.Get("url")
		r.Pos = e.Value.Pos
		r.URL = raw
		p.place(r)
	}
	r.Headers = p.fields(t, "headers", tool, func(name string) string {
		if name == "" || len(name) > 128 || strings.Trim(name, "-") != name {
			return "is not the name of a header"
		}
		return ""
	})
	tool.HTTP = r
}

func (p *toolsParser) place(r *ToolRequest) {
	const hint = `such as "https://api.example.com/send"`
	u, err := url.Parse(r.URL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		p.Errorf(r.Pos, hint, "url: not an absolute URL of https or http")
		return
	case u.User != nil || u.Fragment != "":
		p.Errorf(r.Pos, "secrets go into headers", "url: has a user, a password or a fragment in it")
	case strings.Contains(r.URL, secretMark):
		p.Errorf(r.Pos, "secrets go into headers", "url: has the place of a secret in it")
	}
	r.Scheme = u.Scheme
	if r.Host, err = caps.HostPort(u.Scheme, u.Host); err != nil {
		p.Errorf(r.Pos, hint, "url: %v", err)
	}
}

// fields reads headers or variables, and which secrets stand in them.
func (p *toolsParser) fields(t *tomlfile.Table, key string, tool *Tool, problem func(name string) string) []ToolField {
	table, ok := p.Table(t, key)
	if !ok {
		return nil
	}
	var list []ToolField
	for i := range table.Entries {
		e := &table.Entries[i]
		if wrong := problem(e.Key); wrong != "" {
			p.Errorf(e.Pos, "", "%s: %s %s", key, quote(e.Key), wrong)
			continue
		}
		if slices.ContainsFunc(list, func(f ToolField) bool { return strings.EqualFold(f.Name, e.Key) }) {
			p.Errorf(e.Pos, "", "%s: %s is there twice", key, quote(e.Key))
		}
		if !p.Is(&e.Value, key+"."+e.Key, tomlfile.String) {
			continue
		}
		f := ToolField{Name: e.Key, Value: e.Value.Str}
		for rest := f.Value; ; {
			_, after, found := strings.Cut(rest, secretMark)
			if !found {
				break
			}
			id, next, closed := strings.Cut(after, "}")
			if !closed || !slices.Contains(tool.Secrets, id) {
				p.Errorf(e.Value.Pos, `list the id in "secrets" of the tool`, "%s.%s: %s is none of the tool's secrets", key, e.Key,
					quote(id))
			}
			f.Secrets = append(f.Secrets, id)
			rest = next
		}
		list = append(list, f)
	}
	return list
}
