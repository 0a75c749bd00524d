package console

import (
	"net/http"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/service"
)

func (c *console) agentsPage(r *http.Request, caller *service.Caller) (*view, error) {
	list, err := c.Host.Agents(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	return &view{Page: "agents", Title: "Agents", Nav: "agents", Data: list}, nil
}

// inspected is what rlp agent inspect prints.
type inspected struct {
	Agent       string `json:"agent"`
	Version     string `json:"version"`
	Description string `json:"description"`
	Digest      string `json:"bundle_digest"`
	Entry       string `json:"entry_wasm"`
	Bytes       int64  `json:"wasm_bytes"`
	Policy      string `json:"policy"`
	Refused     string `json:"refused"`
	Signed      bool   `json:"signed"`
	Imports     []struct {
		Module string `json:"module"`
		Name   string `json:"name"`
		Family string `json:"family"`
	} `json:"imports"`
	Findings []struct {
		Severity string `json:"severity"`
		Message  string `json:"message"`
	} `json:"findings"`
}

// shownAgent is the page of an agent.
type shownAgent struct {
	inspected
	Problem   string
	Signature string
	Groups    []importGroup
	Most      int
}

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
	a := shownAgent{Problem: b.Error}
	if err := c.ask(r.Context(), caller, nil, &a.inspected, "agent", "inspect", b.Path); err != nil {
		why, err := told(err)
		if err != nil {
			return nil, err
		}
		a.Agent, a.Version, a.Problem = b.Agent, b.Version, why
	}
	if a.Refused != "" {
		a.Problem = a.Refused
	}
	agents, err := c.Host.Agents(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	a.Signature = "unsigned"
	for _, other := range agents {
		if other.Name == b.Agent && other.Signature != "" {
			a.Signature = other.Signature
		}
	}
	a.Groups = groups(&a.inspected)
	return &view{Page: "agent", Title: b.Agent, Nav: "agents", Data: a}, nil
}

// mostCalls bounds how many imports of a module a page names.
const mostCalls = 200

// groups puts the imports of a module together by family, those of none last.
func groups(a *inspected) []importGroup {
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
