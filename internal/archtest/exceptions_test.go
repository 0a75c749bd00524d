package archtest

// exceptions are the complaints that stand, "law subject", each with its
// reason. One that nothing needs any more fails the tests.
var exceptions = map[string]string{
	"var agents/sdk.host":   "a module has one host, and its imports no other address",
	"var agents/sdk.native": "stands in for the imports where there are none; tests set it",

	"name internal/model": "the models that answer agents: the word of policies, config.toml and the calls",

	"params agents/sdk.kbCAS": "the flat signature that the contract gives the import",
}
