// A guest that calls every function of the interface.
package main

import (
	"os"

	"runloop.dev/rlp/agents/sdk"
)

func main() {
	var errs []error
	add := func(_ any, err error) { errs = append(errs, err) }
	add(sdk.HTTP(sdk.HTTPRequest{URL: "https://api.example.com/"}))
	add(sdk.KBGet("notes", "a"))
	add(sdk.KBPut("notes", "a", nil))
	add(sdk.KBCAS("notes", "a", nil, 0))
	add(nil, sdk.KBDelete("notes", "a"))
	add(sdk.KBList("notes", ""))
	add(sdk.KBSearch("notes", "a", 1))
	add(sdk.SecretHandle("runloop/mail/key"))
	add(sdk.ModelComplete(sdk.CompletionRequest{}))
	add(sdk.ModelEmbed("", nil))
	add(sdk.ExecRun(sdk.ExecRequest{}))
	add(sdk.MCPCall("github", "search", nil))
	add(sdk.AgentLaunch(sdk.LaunchRequest{}))
	add(sdk.TurnNext())
	add(sdk.TimeNow())
	add(nil, sdk.Log(sdk.LevelInfo, "hello"))
	add(nil, sdk.Result([]byte("{}")))
	for _, err := range errs {
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
		}
	}
}
