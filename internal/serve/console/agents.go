package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/ask"
)

// agentRows is how many agents one page lists.
const agentRows = 50

// An agentList is a page of them, by name.
type agentList struct {
	Agents []service.Agent
	After  string // the last of the page before
	Next   string
}

func (c *console) agentsPage(r *http.Request, caller *service.Caller) (*view, error) {
	l := agentList{After: r.URL.Query().Get("after")}
	if l.After != "" && !whole(l.After, nameLetter) {
		return nil, &badRequest{"after is the name of an agent, such as notes_digest"}
	}
	var err error
	if l.Agents, err = c.Host.SomeAgents(r.Context(), caller, service.AgentQuery{After: l.After, Limit: agentRows +
		1}); err != nil {
		return nil, err
	}
	if len(l.Agents) > agentRows {
		l.Agents = l.Agents[:agentRows]
		l.Next = "/ui/agents?after=" + url.QueryEscape(l.Agents[agentRows-1].Name)
	}
	return &view{Page: "agents", Title: "Agents", Nav: "agents", Data: l}, nil
}

// shownAgent is the page of an agent.
type shownAgent struct {
	ask.Inspection
	Problem   string
	Signature string
	Groups    []importGroup
	More      int // findings that are not listed
}

// mostFindings bounds how many findings of a bundle a page tells.
const mostFindings = 20

// An importGroup is what of a family an agent could ever call.
type importGroup struct {
	Family string
	Calls  []string
}

func (c *console) agentPage(r *http.Request, caller *service.Caller) (*view, error) {
	b, err := c.bundle(r.Context(), caller, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	a := shownAgent{Problem: b.Problem, Signature: b.Signature}
	if d, err := c.Host.Inspect(r.Context(), caller, b.Name); err == nil {
		a.Inspection = *d
	} else if a.Problem, err = unreadable(b, err); err != nil {
		return nil, err
	} else {
		a.Agent, a.Version = b.Name, b.Version
	}
	if a.Refused != "" {
		a.Problem = a.Refused
	}
	if a.Signature == "" {
		a.Signature = "unsigned"
	}
	a.Findings, a.More = clip(a.Findings, mostFindings)
	a.Groups = groups(&a.Inspection)
	return &view{Page: "agent", Title: b.Name, Nav: "agents", Data: a}, nil
}

// unreadable is what a page says of an agent that cannot be looked into: what is
// known of it already, or why not.
func unreadable(b service.Agent, err error) (string, error) {
	var away *service.UnavailableError
	if errors.As(err, &away) && b.Problem != "" {
		return b.Problem, nil
	}
	return unanswered(err)
}

// mostCalls bounds how many imports of a module a page names.
const mostCalls = 200

// groups puts the imports of a module together by family, those of none last.
func groups(a *ask.Inspection) []importGroup {
	byFamily := map[string][]string{}
	for i, im := range a.Imports {
		if i == mostCalls {
			break
		}
		family := im.Family
		if family == "" && strings.HasPrefix(im.Module, "wasi") {
			family = "WASI, by what it touches"
		}
		if family == "" {
			family = "no capability"
		}
		byFamily[family] = append(byFamily[family], im.Name)
	}
	var list []importGroup
	for family, calls := range byFamily {
		slices.Sort(calls)
		list = append(list, importGroup{family, calls})
	}
	slices.SortFunc(list, func(a, b importGroup) int { return strings.Compare(a.Family, b.Family) })
	return list
}
