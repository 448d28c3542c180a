package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Juniper/go-netconf/netconf"
	"golang.org/x/crypto/ssh"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "netconf"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

var vxswitchd = sync.OnceValues(func() (string, error) {
	program := filepath.Join(folder, "vxswitchd")
	if out, err := exec.Command("go", "build", "-C", "../../cmd", "-buildvcs=false", "-o", program, "./vxswitchd").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

// A lab is vxswitchd and the adapter beside it.
type lab struct {
	t    *testing.T
	node *api.Client
	addr string
	key  ssh.Signer

	files map[string]string // by use
}

func newLab(t *testing.T) *lab {
	t.Helper()
	program, dir := check.Must(vxswitchd())(t), t.TempDir()
	file := func(name string, text []byte) string {
		name = filepath.Join(dir, name)
		check.OK(t, os.WriteFile(name, text, 0o600))
		return name
	}
	socket := filepath.Join(dir, "s")
	config := file("node.json", fmt.Appendf(nil, `{"control": {"socket": %q}, "segments": [{"vni": 7}]}`, socket))
	schema := file("schema.json", check.Must(exec.Command(program, "-schema").Output())(t))

	daemon := check.Must(netns.Start(context.Background(), "", program, "-config", config))(t)
	t.Cleanup(func() {
		daemon.Kill()
		if t.Failed() {
			t.Log(daemon.Output())
		}
	})
	check.OK(t, daemon.Printed(t.Context(), "ready "))
	l := &lab{t: t, node: api.NewClient(socket)}

	newKey := func() (ssh.Signer, []byte) {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		check.OK(t, err)
		return check.Must(ssh.NewSignerFromKey(private))(t), pem.EncodeToMemory(check.Must(ssh.MarshalPrivateKey(private, ""))(t))
	}
	_, host := newKey()
	l.key, _ = newKey()
	l.files = map[string]string{"schema": schema, "host": file("host", host), "keys": file("keys", ssh.MarshalAuthorizedKey(l.key.PublicKey()))}
	s := check.Must(newServer(socket, schema, l.files["host"], l.files["keys"]))(t)
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	l.addr = listener.Addr().String()
	go s.serve(listener)
	return l
}

func (l *lab) config(key ssh.Signer) *ssh.ClientConfig {
	return &ssh.ClientConfig{User: "op", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: time.Minute}
}

// A client is Juniper's.
type client struct {
	*netconf.Session
	t *testing.T
}

func (l *lab) client() client {
	l.t.Helper()
	s := check.Must(netconf.DialSSH(l.addr, l.config(l.key)))(l.t)
	l.t.Cleanup(func() { s.Close() })
	return client{s, l.t}
}

// do executes an operation; it fails unless the answer, or the error, has want.
func (c client) do(op, want string) string {
	c.t.Helper()
	reply, err := c.Exec(netconf.RawMethod(op))
	got := ""
	switch {
	case err != nil:
		got = err.Error()
	default:
		got = reply.Data
	}
	if !strings.Contains(got, want) {
		c.t.Errorf("%s\nanswer %s\nwant %s", op, got, want)
	}
	return got
}

func edit(x string) string {
	return `<edit-config><target><candidate/></target><config><vxswitch xmlns="urn:vxswitch:config" xmlns:nc="urn:ietf:params:xml:ns:netconf:base:1.0">` + x + `</vxswitch></config></edit-config>`
}

const (
	commit   = "<commit/>"
	discard  = "<discard-changes/>"
	validate = "<validate><source><candidate/></source></validate>"
	read     = "<get-config><source><running/></source></get-config>"
)

// Juniper's client makes, changes and removes segments.
func TestConfigure(t *testing.T) {
	l := newLab(t)
	c := l.client()
	segments := func() (vnis []string) {
		for _, s := range check.Must(l.node.Segments(t.Context(), nil))(t) {
			vnis = append(vnis, fmt.Sprint(s.VNI))
		}
		return vnis
	}
	c.do(read, "<segments>")
	c.do(edit(`<tunnels><name>vx</name><local>127.0.0.1</local><port>14799</port></tunnels>
		<segments><vni>8</vni><tunnel>vx</tunnel><flood>127.0.0.2</flood><flood>127.0.0.3</flood><noLearning>true</noLearning><maxMACs>50</maxMACs></segments>
		<policies><name>p</name><sets><name>s</name><value>10.0.0.0/8</value><value>fd00::/8</value></sets><rules><name>r</name><action>allow</action></rules></policies>`), "ok")
	if got := fmt.Sprint(segments()); got != "[7]" {
		t.Errorf("before commit: segments %v", got)
	}
	c.do("<get-config><source><candidate/></source></get-config>", "<flood>127.0.0.2</flood><flood>127.0.0.3</flood>")
	c.do(validate, "ok")
	c.do(commit, "ok")
	if got := fmt.Sprint(segments()); got != "[7 8]" {
		t.Errorf("after commit: segments %v", got)
	}
	c.do(read, "<sets><name>s</name><value>10.0.0.0/8</value><value>fd00::/8</value></sets>")

	candidate := "<get-config><source><candidate/></source></get-config>"
	c.do(edit(`<policies><name>p</name><sets><name>s</name><value>192.0.2.0/24</value></sets></policies>`), "ok")
	c.do(candidate, "<value>10.0.0.0/8</value><value>fd00::/8</value><value>192.0.2.0/24</value>")
	c.do(edit(`<policies><name>p</name><sets><name>s</name><value nc:operation="delete">10.0.0.0/8</value></sets></policies>`), "ok")
	c.do(candidate, "<sets><name>s</name><value>fd00::/8</value><value>192.0.2.0/24</value></sets>")
	c.do(edit(`<policies><name>p</name><sets nc:operation="replace"><name>s</name><value>10.0.0.0/8</value></sets></policies>`), "ok")
	c.do(candidate, "<sets><name>s</name><value>10.0.0.0/8</value></sets>")
	none := func(x string) string {
		return strings.Replace(edit(x), "<config>", "<default-operation>none</default-operation><config>", 1)
	}
	c.do(none(`<segments><vni>8</vni><maxMACs>60</maxMACs><noLearning nc:operation="replace">false</noLearning></segments>`), "ok")
	if got := c.do(candidate, "<maxMACs>50</maxMACs>"); strings.Contains(got, "<noLearning>true") {
		t.Errorf("noLearning is as it was: %s", got)
	}
	c.do(none(`<segments><vni>9</vni></segments>`), "does not exist")
	c.do(strings.Replace(none(""), "none", "delete", 1), `default-operation "delete": must be merge, replace or none`)
	c.do(discard, "ok")

	only := `<get-config><source><running/></source><filter type="subtree"><vxswitch xmlns="urn:vxswitch:config"><segments><vni>8</vni><maxMACs/></segments></vxswitch></filter></get-config>`
	if got := c.do(only, "<segments><maxMACs>50</maxMACs><vni>8</vni></segments>"); strings.Contains(got, "tunnel") || strings.Count(got, "<segments>") != 1 {
		t.Errorf("the filter lets through\n%s", got)
	}

	c.do(edit(`<segments><vni>8</vni><flood nc:operation="delete">127.0.0.2</flood><maxMACs nc:operation="remove"/></segments><segments nc:operation="remove"><vni>7</vni></segments>`), "ok")
	c.do(commit, "ok")
	if got := fmt.Sprint(segments()); got != "[8]" {
		t.Errorf("segments %v", got)
	}
	if got := c.do(read, "<flood>127.0.0.3</flood>"); strings.Contains(got, "127.0.0.2") {
		t.Errorf("still there: %s", got)
	}
	check.OK(t, l.node.ChangeFDB(t.Context(), api.FDBChange{Op: "add", VNI: 8, MAC: "02:00:00:00:00:01", Dst: "127.0.0.3"}))
	c.do("<get/>", "<fdb>")
	c.do(edit(`<segments><vni>5000000</vni><tunnel>vx</tunnel></segments>`), "ok")
	c.do(commit, "ok")
	check.OK(t, l.node.ChangeFDB(t.Context(), api.FDBChange{Op: "add", VNI: 5000000, MAC: "02:00:00:00:00:01", Dst: "127.0.0.3"}))
	if got := c.do("<get/>", "<vni>5000000</vni>"); strings.Count(got, "<vni>5000000</vni>") != 2 {
		t.Errorf("no FDB entry of VNI 5000000: %s", got)
	}
	c.do(edit(`<segments><vni>0008</vni><maxMACs>+60</maxMACs></segments>`), "ok")
	c.do("<get-config><source><candidate/></source></get-config>", "<maxMACs>60</maxMACs>")
	c.do(commit, "ok")

	text := string(check.Must(os.ReadFile("../../docs/netconf.md"))(t))
	_, text, _ = strings.Cut(text, "```text\n")
	text, _, found := strings.Cut(text, "```")
	if !found || !strings.Contains(text, "<vni>100</vni>") {
		t.Fatal("the page has no example")
	}
	c.do("<edit-config><target><candidate/></target><default-operation>replace</default-operation><config>"+text+"</config></edit-config>", "ok")
	c.do(validate, "ok")
	c.do("<close-session/>", "ok")
}

// What is wrong is said under the words of the RFC, and changes nothing.
func TestErrors(t *testing.T) {
	l := newLab(t)
	c, other := l.client(), l.client()
	for op, want := range map[string]string{
		edit(`<nothing/>`):                                                   "nothing: no such element",
		edit(`<segments><vni>x</vni></segments>`):                            `vni "x": must be a number`,
		edit(`<segments><flood>127.0.0.1</flood></segments>`):                "segments: vni is missing",
		edit(`<segments><vni>7</vni><noLearning>1x</noLearning></segments>`): `must be true or false`,
		edit(`<segments nc:operation="create"><vni>7</vni></segments>`):      "exists",
		edit(`<segments nc:operation="delete"><vni>9</vni></segments>`):      "does not exist",
		edit(`<segments nc:operation="mend"><vni>9</vni></segments>`):        "must be merge, replace, create, delete or remove",
		"<edit-config><target><running/></target></edit-config>":             "must be candidate",
		"<edit-config><target><candidate/></target></edit-config>":           "must have one element vxswitch",
		"<reboot/>": "reboot: no such operation",
	} {
		c.do(op, want)
	}
	c.do(validate, "ok")

	c.do(edit(`<segments><vni>16777216</vni></segments><tunnels><name>a</name></tunnels>`), "ok")
	c.do(validate, "vni")
	c.do(commit, "vni")
	c.do(discard, "ok")
	c.do(commit, "ok")

	// Who has been overtaken by another way is told.
	c.do(edit(`<segments><vni>9</vni></segments>`), "ok")
	check.Must(l.node.SetPart(t.Context(), api.Part{List: "segments", Name: "10"}, []byte(`{"vni": 10}`), nil))(t)
	c.do(commit, "changed")
	c.do(discard, "ok")

	c.do("<lock><target><candidate/></target></lock>", "ok")
	other.do(edit(`<segments><vni>11</vni></segments>`), "has the lock")
	c.do(edit(`<segments><vni>12</vni></segments>`), "ok")
	other.do(discard, "has the lock")
	other.do(commit, "has the lock")
	other.do("<unlock><target><running/></target></unlock>", "nobody has the lock")
	c.do("<lock><target><candidate/></target></lock>", "has the lock already")
	c.do("<get-config><source><candidate/></source></get-config>", "<vni>12</vni>")
	c.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := other.Exec(netconf.MethodLock("candidate")); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal("the lock of a session that has gone is kept")
		}
	}
	if got := other.do("<get-config><source><candidate/></source></get-config>", "<vni>10</vni>"); strings.Contains(got, "<vni>12</vni>") {
		t.Error("changes of a session that has gone are kept")
	}
	if _, err := netconf.DialSSH(l.addr, l.config(check.Must(ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, 32))))(t))); err == nil {
		t.Error("a stranger is let in")
	}
}

// A client of NETCONF 1.1 speaks in chunks; bytes that are no NETCONF end its session, and no other.
func TestChunks(t *testing.T) {
	l := newLab(t)
	hello := []byte(`<hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><capabilities><capability>urn:ietf:params:netconf:base:1.1</capability></capabilities></hello>` + endOfOld)
	talk := func(text string) string {
		c := check.Must(ssh.Dial("tcp", l.addr, l.config(l.key)))(t)
		defer c.Close()
		s := check.Must(c.NewSession())(t)
		in, out := check.Must(s.StdinPipe())(t), check.Must(s.StdoutPipe())(t)
		check.OK(t, s.RequestSubsystem("netconf"))
		check.Must(in.Write(append(hello, text...)))(t)
		_, answer, _ := strings.Cut(string(check.Must(io.ReadAll(out))(t)), endOfOld)
		return answer
	}
	got := talk("\n#20\n<rpc message-id=\"9\">\n#16\n<close-session/>\n#6\n</rpc>\n##\n")
	if want := `message-id="9"><ok></ok></rpc-reply>`; !strings.Contains(got, want) || !strings.HasPrefix(got, "\n#") || !strings.HasSuffix(got, "\n##\n") {
		t.Errorf("answer %q, want %q in chunks", got, want)
	}
	for _, text := range []string{"\n#0\n\n##\n", "\n#99999999\nx", "\n##\n", "no chunk\n\n", "\n#5\n<rpc>\n##\n", "\n#1\nx\n##\n", "\n#4294967295\n", "\n#18446744073709551615\n", strings.Repeat("#", 5000)} {
		if got := talk(text); got != "" {
			t.Errorf("%.30q: answer %q", text, got)
		}
	}
	l.client().do(read, "<vni>7</vni>")
}

func TestSchema(t *testing.T) {
	for text, want := range map[string]string{"": "unexpected end", "{}": "no segments", `{"properties": {"segments": {"$ref": "#/$defs/a"}}}`: "#/$defs/a is missing"} {
		if _, err := readSchema([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Errors about files name the flag and the file.
func TestFiles(t *testing.T) {
	l := newLab(t)
	empty := filepath.Join(t.TempDir(), "empty")
	check.OK(t, os.WriteFile(empty, []byte("\n"), 0o600))
	schema, host, keys := l.files["schema"], l.files["host"], l.files["keys"]
	for want, f := range map[string][3]string{
		"-schema: open /none: ":                {"/none", host, keys},
		"-hostkey: " + keys + ": ":             {schema, keys, keys},
		"-keys: " + host + ": ":                {schema, host, host},
		"-keys: " + empty + ": has no key, so": {schema, host, empty},
	} {
		check.ErrorHas(t, check.Err(newServer("", f[0], f[1], f[2])), want)
	}
}
