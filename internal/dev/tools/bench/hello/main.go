// Hello is the Go agent of the comparison, about 2 MB as WASM. js/hello.js is the
// same for those that run JavaScript.
package main

import "fmt"

func main() { fmt.Println("ok") }
