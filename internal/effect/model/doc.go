// Package model is the broker between guests and the models that the operator
// configured: it finds the provider of a name, reserves what a call may cost at
// most before anyone is asked, settles it by what the provider says that it
// cost, and answers "local:echo" itself.
//
// What a limit leaves is never passed by asking: a call whose largest cost does
// not fit is refused. A key is fetched at the moment of the call and kept
// nowhere. The package opens no connection and reads no clock; who speaks a
// provider's protocol is a [Backend].
package model
