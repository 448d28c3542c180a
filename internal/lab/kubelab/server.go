// Package kubelab runs a kube-apiserver for a test: the real one, on an etcd and ports of its own.
package kubelab

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Tokens of the users that there are.
const (
	Admin   = "admin-token"   // may do all
	Flannel = "flannel-token" // the ServiceAccount flannel in the namespace kube-flannel
	Calico  = "calico-token"  // the ServiceAccount vxswitch in the namespace kube-system
)

const users = Admin + `,admin,1,"system:masters"
` + Flannel + `,system:serviceaccount:kube-flannel:flannel,2,"system:serviceaccounts,system:serviceaccounts:kube-flannel"
` + Calico + `,system:serviceaccount:kube-system:vxswitch,3,"system:serviceaccounts,system:serviceaccounts:kube-system"
`

// A Server is a kube-apiserver with authorization by roles and without admission of service accounts.
type Server struct {
	Addr string // host and port
	URL  string // https, with a certificate of its own

	t      testing.TB
	dir    string
	args   []string
	cmd    *exec.Cmd
	client *http.Client
}

// Start starts an API server, which ends with the test. Without the program, or etcd, the test is skipped: see Path.
func Start(t testing.TB) *Server {
	t.Helper()
	path := Path(t)
	store := etcdlab.Start(t, etcdlab.Options{})
	s := &Server{t: t, dir: t.TempDir()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.ok(err)
	s.Addr = l.Addr().String()
	s.ok(l.Close())
	s.URL = "https://" + s.Addr
	_, port, _ := net.SplitHostPort(s.Addr)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	s.ok(err)
	s.write("account.key", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	s.write("tokens.csv", []byte(users))
	s.args = []string{path,
		"--etcd-servers", store.URL, "--bind-address", "127.0.0.1", "--secure-port", port, "--cert-dir", filepath.Join(s.dir, "certs"),
		"--service-cluster-ip-range", "10.0.0.0/24", "--service-account-issuer", "https://lab", "--service-account-key-file", s.file("account.key"),
		"--service-account-signing-key-file", s.file("account.key"), "--authorization-mode", "RBAC", "--token-auth-file", s.file("tokens.csv"),
		"--disable-admission-plugins", "ServiceAccount", "--watch-cache=true",
	}
	s.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(func() { s.Stop(); s.client.CloseIdleConnections() })
	s.Start()
	return s
}

func (s *Server) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

func (s *Server) write(name string, b []byte) {
	s.t.Helper()
	s.ok(os.WriteFile(s.file(name), b, 0o600))
}

// Start starts the API server again, with what is in etcd, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	said, err := os.Create(s.file("log"))
	s.ok(err)
	defer said.Close()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = said, said
	s.ok(s.cmd.Start())
	var last string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		code, text, err := s.call("GET", "/readyz?verbose", nil)
		if err == nil && code == http.StatusOK {
			return
		}
		last = fmt.Sprint(code, " ", text, err)
	}
	b, _ := os.ReadFile(s.file("log"))
	s.t.Fatalf("lab: kube-apiserver is not ready: %s\n%s", last, netns.Tail(b))
}

// Stop kills the API server.
func (s *Server) Stop() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *Server) call(method, path string, body []byte) (code int, text string, err error) {
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+Admin)
	r.Header.Set("Content-Type", "application/json")
	a, err := s.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	return a.StatusCode, string(b), err
}

// Create creates an object of a path, such as /api/v1/namespaces, as the administrator.
func (s *Server) Create(path string, object []byte) {
	s.t.Helper()
	code, text, err := s.call("POST", path, object)
	if err != nil || code != http.StatusCreated {
		s.t.Fatalf("lab: kube-apiserver: %s: %d, %s, %v", path, code, text, err)
	}
}

// Kubeconfig writes a file for a user of an API server at an address that leads here, and returns its path.
func (s *Server) Kubeconfig(addr, token string) string {
	s.t.Helper()
	name := "kubeconfig-" + strings.NewReplacer(":", "-", ".", "-").Replace(addr)
	s.write(name, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "https://%s", insecure-skip-tls-verify: true}}]
users: [{name: lab, user: {token: %s}}]
contexts: [{name: lab, context: {cluster: lab, user: lab}}]
current-context: lab
`, addr, token))
	return s.file(name)
}
