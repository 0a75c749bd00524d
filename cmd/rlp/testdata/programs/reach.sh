# reach.sh FOLDER GRANTED OTHER: what programs make of a server that is granted, and of
# one that is not. None of them is told of a proxy.
ca=$1/ca.pem
try() {
	what=$1 && shift
	command -v "$2" >/dev/null || { echo "$what: not installed" && return; }
	mkdir "$what" && cd "$what" && "$@" 2>errors || { echo "$what: refused" && cat errors >&2; }
	cd ..
}
curls() { curl -sS --cacert $ca "$URL/"; }
pythons() { python3 -c "import ssl, urllib.request as u
print(u.urlopen('$URL/', context=ssl.create_default_context(cafile='$ca')).read().decode())"; }
nodes() { NODE_EXTRA_CA_CERTS=$ca node -e "fetch('$URL/').then(r => r.text()).then(console.log, () => process.exit(1))"; }
goes() { SSL_CERT_FILE=$ca $1/fetcher "$URL/"; }
