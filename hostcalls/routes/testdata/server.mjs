// Says which file it would serve, as servers for Node read the path: by URL, by the
// older parser, and with the path normalized after it was decoded.
import http from 'node:http';
import path from 'node:path';
import url from 'node:url';

const server = http.createServer((req, res) => {
  const seen = [];
  for (const read of [
    () => new URL(req.url, 'http://h').pathname,
    () => path.posix.normalize(decodeURIComponent(url.parse(req.url).pathname)),
    () => path.win32.normalize(decodeURIComponent(req.url)).replaceAll('\\', '/'),
  ]) {
    try {
      seen.push(read());
    } catch {
      seen.push('/'); // it answers 400, or ends
    }
  }
  res.end(seen.join('\n'));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
