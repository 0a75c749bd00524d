package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"runloop.dev/rlp/agents/sdk"
)

// critic is the agent that is asked.
const critic = "critic"

// A text is one draft as the critic takes it.
type text struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// A remark is what the critic says of one draft.
type remark struct {
	Name   string `json:"name"`
	Remark string `json:"remark"`
}

// An edit is what came of one run: what could not be done is in problems, and
// the rest is done.
type edit struct {
	Drafts   int      `json:"drafts"`
	Remarks  []remark `json:"remarks"`
	Problems []string `json:"problems,omitempty"`
}

func (e *edit) problem(what string, err error) {
	e.Problems = append(e.Problems, what+": "+sdk.Why(err))
}

func (e *edit) run() {
	drafts := e.read()
	if e.Drafts = len(drafts); e.Drafts == 0 {
		return
	}
	input, err := json.Marshal(drafts)
	if err != nil {
		e.problem("the drafts", err)
		return
	}
	report, err := sdk.AgentLaunch(sdk.LaunchRequest{
		Agent: critic, Input: input,
		Limits: map[string]int64{"wall_time_ms": 10_000},
	})
	switch {
	case err != nil:
		e.problem(critic, err)
	case report.Outcome != "ok":
		e.Problems = append(e.Problems, critic+" ended with "+report.Outcome+" "+strconv.Itoa(report.ExitCode))
	default:
		if err := json.Unmarshal(report.Result, &e.Remarks); err != nil {
			e.problem("what "+critic+" returned", err)
		}
	}
}

// read takes in all drafts that it may.
func (e *edit) read() []text {
	entries, err := sdk.KBList("drafts", "")
	if err != nil {
		e.problem("the drafts", err)
	}
	var drafts []text
	for _, entry := range entries {
		value, err := sdk.KBGet("drafts", entry.Key)
		if err != nil {
			e.problem(entry.Key, err)
			continue
		}
		drafts = append(drafts, text{entry.Key, string(value)})
	}
	return drafts
}

// summary is the outcome for people.
func (e *edit) summary() string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(e.Drafts) + " drafts, " + strconv.Itoa(len(e.Remarks)) + " remarks\n")
	for _, r := range e.Remarks {
		b.WriteString("  " + r.Name + ": " + r.Remark + "\n")
	}
	for _, p := range e.Problems {
		b.WriteString("could not do: " + p + "\n")
	}
	return b.String()
}
