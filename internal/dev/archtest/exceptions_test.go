package archtest

// exceptions are the complaints that stand, "law subject", each with its
// reason. One that nothing needs any more fails the tests.
var exceptions = map[string]string{
	"var launcher.isMain":   "whether main began with Main is a fact of the process",
	"var agents/sdk.host":   "a module has one host, and its imports no other address",
	"var agents/sdk.native": "stands in for the imports where there are none; tests set it",

	"name internal/effect/model": "the models that answer agents: the word of policies, config.toml and the calls",

	"params agents/sdk.kbCAS": "the flat signature that the contract gives the import",

	"json agents/sdk/delegate.go":                       "a guest takes the word of its host, and its module is small",
	"json agents/sdk/model.go":                          "a guest takes the word of its host, and its module is small",
	"json agents/sdk/net.go":                            "a guest takes the word of its host, and its module is small",
	"json agents/critic/main.go":                        "a guest's input, which its host has read strictly",
	"json agents/editor/edit.go":                        "a guest's input, which its host has read strictly",
	"json internal/effect/mcpclient/mcptest/server.go":  "a server for tests",
	"json internal/effect/model/modeltest/anthropic.go": "a server for tests",
	"json internal/effect/model/modeltest/openai.go":    "a server for tests",
	"json kb/words/words.go": "words of values that are any bytes: an index that is there is " +
		"found again",

	"lines internal/engine/guest/hostiletest.Claims":     "a table of modules",
	"lines internal/engine/guest/hostiletest.countBombs": "a table of modules",
	"lines internal/engine/guest/hostiletest.Runs":       "a table of modules",
	"lines internal/engine/guest/hostiletest.Small":      "a table of modules",
}
