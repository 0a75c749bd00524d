# reach.sh FOLDER GRANTED OTHER: what programs make of a server that is granted, and of
# one that is not. None of them is told of a proxy.
files=$1 ca=$1/ca.pem
try() { # WHAT PROGRAM: the function WHAT, for each server
	command -v "$2" >/dev/null || { echo "$1 is not installed" && return; }
	for URL in "$granted" "$other"; do
		mkdir "$1-${URL##*:}" && cd "$1-${URL##*:}" || exit
		echo "$1 $([ "$URL" = "$granted" ] && echo granted || echo other): $($1 2>errors || echo refused)"
		cat errors >&2
		cd ..
	done
}
granted=$2 other=$3
curls() { curl -sS --cacert "$ca" "$URL/"; }
pythons() {
	/usr/bin/python3 -c "import ssl, urllib.request as u
print(u.urlopen('$URL/', context=ssl.create_default_context(cafile='$ca')).read().decode())"
}
nodes() { NODE_EXTRA_CA_CERTS=$ca node -e "fetch('$URL/').then(r => r.text()).then(console.log, () => process.exit(1))"; }
goes() { SSL_CERT_FILE=$ca "$files/fetcher" "$URL/"; }
javas() { java -XX:TieredStopAtLevel=1 -cp "$files" Fetch "$URL/" "$ca"; }
gits() { git -c http.sslCAInfo="$ca" clone -q "$URL/git/r.git" r && cat r/greeting; }
npms() {
	npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 --registry "$URL/" --cafile "$ca" greet >&2 &&
		npm exec --no-update-notifier --offline -- greet
}
pips() {
	/usr/bin/python3 -m pip install -q --disable-pip-version-check --no-cache-dir --retries 0 --index-url "$URL/simple" \
		--cert "$ca" --target t greet >&2 && PYTHONPATH=t /usr/bin/python3 -c 'import greet'
}
try curls curl
try pythons /usr/bin/python3
try nodes node
try goes "$files/fetcher"
try javas java
try gits git
try npms npm
try pips /usr/bin/pip3
