package bundles

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// ParseTools reads tools.json. File is used in positions alone. The error wraps
// one [*Error] for everything that is wrong. A tool that does not say what it
// needs is refused: nothing is taken to need nothing.
func ParseTools(file string, data []byte) ([]Tool, error) {
	root, err := tomlfile.ParseJSON(file, data, MaxToolsBytes)
	if err != nil {
		return nil, toolErrors(err)
	}
	p := &toolsParser{}
	p.all(root)
	if err := p.Err(); err != nil {
		return nil, toolErrors(err)
	}
	return p.tools, nil
}

func toolErrors(err error) error {
	return restated(err, "tools", func(message string) string {
		return strings.ReplaceAll(message, "a table",
			"an object")
	})
}

type toolsParser struct {
	tomlfile.Walk
	tools []Tool
}

// at puts the path of a place in the document before what f finds wrong there.
func (p *toolsParser) at(path string, f func()) {
	known := len(p.Errors())
	f()
	for _, e := range p.Errors()[known:] {
		e.Msg = path + ": " + e.Msg
	}
}

func (p *toolsParser) all(root *tomlfile.Table) {
	p.Known(root, "version", "tools", "$schema")
	p.Need(root, "version", "tools")
	if v, ok := p.Int(root, "version"); ok && v != 1 {
		e, _ := root.Get("version")
		p.Errorf(e.Value.Pos, "write 1", "version: there is no version %d of tools.json", v)
	}
	list, _ := p.Get(root, "tools", tomlfile.Array)
	if list == nil {
		return
	}
	if len(list.Items) > MaxTools {
		p.Errorf(list.Pos, "", "tools: %d tools; at most %d are allowed", len(list.Items), MaxTools)
		return
	}
	for i := range list.Items {
		p.at(fmt.Sprintf("tools[%d]", i), func() {
			if p.Is(&list.Items[i], "it", tomlfile.TableKind) {
				p.tool(list.Items[i].Table)
			}
		})
	}
}

func (p *toolsParser) tool(t *tomlfile.Table) {
	p.Known(t, "id", "description", "transport", "input_schema", "result_schema", "schema_refs", "capabilities", "secrets",
		"budget",
		"requires_confirmation", "observability")
	if !p.fits(t, "") {
		return
	}
	tool := Tool{Pos: t.Pos, Budget: ToolBudget{-1, -1}}
	tool.ID = p.id(t)
	tool.Description = prose(&p.Walk, t)
	tool.Confirm, _ = p.Bool(t, "requires_confirmation")
	p.schemas(t, &tool)
	tool.Capabilities, tool.Placed = p.capabilities(t)
	tool.Secrets = p.secrets(t)
	p.Need(t, "transport")
	if tr, ok := p.Table(t, "transport"); ok {
		p.at("transport", func() { p.transport(tr, &tool) })
	}
	if b, ok := p.Table(t, "budget"); ok {
		p.at("budget", func() { tool.Budget = p.budget(b) })
	}
	if o, ok := p.Table(t, "observability"); ok {
		p.at("observability", func() {
			p.Known(o, "tags")
			tool.Tags, _ = p.Strings(o, "tags")
			for i, tag := range tool.Tags {
				if !isVersion(tag) {
					e, _ := o.Get("tags")
					p.Errorf(e.Value.Pos, "1 to 64 letters, digits, dots, +, _ and -", "tags[%d]: %s is no tag", i, quote(tag))
				}
			}
		})
	}
	p.tools = append(p.tools, tool)
}

// fits refuses lists that are longer than anybody would write: each entry is held
// against the others, and against what the run holds.
func (p *toolsParser) fits(t *tomlfile.Table, path string) bool {
	ok := true
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Key == "input_schema" || e.Key == "result_schema" {
			continue
		}
		n := len(e.Value.Items)
		if sub := e.Value.Table; sub != nil {
			n = len(sub.Entries)
			ok = n <= MaxToolWords && p.fits(sub, path+e.Key+".") && ok
		}
		if n > MaxToolWords {
			p.Errorf(e.Value.Pos, "", "%s%s: %d entries; at most %d are allowed", path, e.Key, n, MaxToolWords)
			ok = false
		}
	}
	return ok
}

// id reads the name of a tool: one that no other has, in any case of letters.
func (p *toolsParser) id(t *tomlfile.Table) string {
	p.Need(t, "id")
	id, ok := p.String(t, "id")
	if !ok {
		return ""
	}
	e, _ := t.Get("id")
	if !isToolID(id) {
		p.Errorf(e.Value.Pos, "a letter, then at most 63 letters, digits, - and . and _, which does not come twice in a row",
			"id: %s is not the name of a tool", quote(id))
	}
	if _, known := caps.ToolScope(id); known { // or who hides that call would think that it is gone
		p.Errorf(e.Value.Pos, "give it a name of its own", "id: %s is the name of a host call", quote(id))
	}
	for i := range p.tools {
		if strings.EqualFold(p.tools[i].ID, id) {
			p.Errorf(e.Value.Pos, "the first one is at "+p.tools[i].Pos.String(), "id: there is another tool %s", quote(id))
		}
	}
	return id
}

// isToolID reports whether s can be a tool's name, and be written category__name.
func isToolID(s string) bool {
	return isVersion(s) && (s[0] > '9') && !strings.Contains(s, "__") && !strings.Contains(s, "+")
}

// schemas reads the two schemas and the names of the files that they refer to.
// Whether they are schemas is for who compiles them.
func (p *toolsParser) schemas(t *tomlfile.Table, tool *Tool) {
	var err error
	if v, ok := p.Get(t, "input_schema", tomlfile.TableKind); ok {
		if tool.Input, err = v.JSON(); err != nil {
			p.Errorf(v.Pos, "", "input_schema: %v", err)
		}
	}
	if v, ok := p.Get(t, "result_schema", tomlfile.TableKind); ok {
		if tool.Result, err = v.JSON(); err != nil {
			p.Errorf(v.Pos, "", "result_schema: %v", err)
		}
	}
	refs, _ := p.Get(t, "schema_refs", tomlfile.Array)
	tool.Schemas, _ = p.Strings(t, "schema_refs")
	if refs == nil || len(refs.Items) != len(tool.Schemas) {
		return
	}
	for i, name := range tool.Schemas {
		rest, ok := strings.CutPrefix(name, "schemas/")
		switch {
		case !ok || !strings.HasSuffix(rest, ".json") || checkName(name) != "":
			p.Errorf(refs.Items[i].Pos, `such as "schemas/order.json"`,
				"schema_refs[%d]: %s is no file of schemas in the bundle", i, quote(name))
		case slices.Contains(tool.Schemas[:i], name):
			p.Errorf(refs.Items[i].Pos, "", "schema_refs[%d]: %s is there twice", i, quote(name))
		}
	}
}

// capabilities reads what the tool needs, in either spelling.
func (p *toolsParser) capabilities(t *tomlfile.Table) (list []caps.Entry, placed []ToolPlaced) {
	if _, ok := t.Get("capabilities"); !ok {
		p.Errorf(t.Pos, `write "capabilities": [] for a tool that needs what its transport needs and nothing else`,
			"capabilities is missing: a tool that does not say what it needs is not attached")
		return nil, nil
	}
	v, _ := p.Get(t, "capabilities", tomlfile.Array)
	words, ok := p.Strings(t, "capabilities")
	if !ok {
		return nil, nil
	}
	for i, word := range words {
		pos := v.Items[i].Pos
		if domain, name, ok := strings.Cut(word, "{"); ok && strings.HasPrefix(word, "fs:") {
			if name, ok = strings.CutSuffix(name, "}"); !ok || !isParam(name) || strings.Count(domain, ":") != 2 ||
				!strings.HasSuffix(domain, ":") {
				p.Errorf(pos, "such as fs:read:{notes}", "capabilities[%d]: a param of the manifest stands for a whole path", i)
			}
			if _, err := caps.ParseGrant(domain + "/" + name); err != nil {
				p.Errorf(pos, "such as fs:read:{notes}", "capabilities[%d]: %v", i, err)
			}
			placed = append(placed, ToolPlaced{domain, name, pos})
			continue
		}
		g, err := caps.ParseGrant(word)
		switch {
		case err != nil:
			p.Errorf(pos, "such as fs:read:/srv/data, kb:read:notes or net:api.example.com", "capabilities[%d]: %v", i, err)
			continue
		case slices.ContainsFunc(list, func(e caps.Entry) bool { return e.Grant == g }):
			p.Errorf(pos, "", "capabilities[%d]: %s is there twice", i, g)
		}
		list = append(list, caps.Entry{Grant: g, Pos: caps.Pos(pos)})
	}
	return list, placed
}

func (p *toolsParser) secrets(t *tomlfile.Table) []string {
	v, _ := p.Get(t, "secrets", tomlfile.Array)
	ids, ok := p.Strings(t, "secrets")
	for i, id := range ids {
		if !ok {
			break
		}
		if _, err := caps.SecretID(id); err != nil {
			p.Errorf(v.Items[i].Pos, `such as "runloop/mail/smtp_api_key"`, "secrets[%d]: %v", i, err)
		} else if slices.Contains(ids[:i], id) {
			p.Errorf(v.Items[i].Pos, "", "secrets[%d]: %s is there twice", i, quote(id))
		}
	}
	return ids
}

// budget reads what all calls may cost. A missing key is no bound, 0 is none at
// all.
func (p *toolsParser) budget(t *tomlfile.Table) ToolBudget {
	p.Known(t, "tokens", "usd")
	b := ToolBudget{-1, -1}
	if n, ok := p.Int(t, "tokens"); ok {
		if b.Tokens = n; n < 0 {
			e, _ := t.Get("tokens")
			p.Errorf(e.Value.Pos, "leave it out for no bound", "tokens is negative")
		}
	}
	if usd, ok := p.Number(t, "usd"); ok {
		b.MicroUSD = int64(math.Round(usd * 1e6))
		if usd < 0 || usd > 1e9 {
			e, _ := t.Get("usd")
			p.Errorf(e.Value.Pos, "leave it out for no bound", "usd is not from 0 to 1e9")
		}
	}
	return b
}

func (p *toolsParser) timeout(t *tomlfile.Table) time.Duration {
	ms, ok := p.Int(t, "timeout_ms")
	if ok && (ms <= 0 || ms > 600_000) {
		e, _ := t.Get("timeout_ms")
		p.Errorf(e.Value.Pos, "", "timeout_ms is not from 1 to 600000")
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}
