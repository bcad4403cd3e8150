package cli

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
)

const (
	// maxRequests and maxBytes bound what one command asks of registries and
	// receives: far more than an honest one has.
	maxRequests = 100_000
	maxBytes    = 64 << 30
)

// RegistryFlags are the flags of a command that speaks to registries: trust in
// their certificates, and where credentials are.
type RegistryFlags struct {
	app        *App
	configFile string
	caFile     string
	clientCert string
	clientKey  string
	certsDirs  []string
	plainHTTP  []string
	// writes says that the command writes credentials.
	writes bool
	// stall is how long a connection or a credential helper may be silent.
	stall time.Duration
}

// RegistryFlags adds the flags to a command, and says which exit codes and
// hints go with a registry's errors. What a command registers itself with
// [App.MapError] comes before that.
func (a *App) RegistryFlags(flags *pflag.FlagSet) *RegistryFlags {
	r := &RegistryFlags{app: a}
	flags.StringVar(&r.configFile, "registry-config", "",
		"`FILE` with registry credentials (default: where docker and podman keep them)")
	flags.StringVar(&r.caFile, "ca-file", "", "PEM `FILE` with the certificate authorities of registries")
	flags.StringVar(&r.clientCert, "client-cert", "", "PEM `FILE` with the client certificate for registries")
	flags.StringVar(&r.clientKey, "client-key", "", "PEM `FILE` with the key of --client-cert")
	flags.StringArrayVar(&r.certsDirs, "certs-dir", nil,
		"`DIR` with certificate authorities and client certificates by host, as HOST[:PORT]/*.crt, *.cert and *.key (repeatable; default: docker's and podman's certs.d)")
	flags.StringArrayVar(&r.plainHTTP, "insecure-plain-http", nil,
		"registry `HOST[:PORT]` to speak to without TLS; on loopback, that is the fallback where there is none (repeatable)")
	flags.DurationVar(&a.timeout, "timeout", 0, "give up after this `DURATION`, such as 10m (default: none)")
	flags.DurationVar(&r.stall, "stall-timeout", 30*time.Second,
		"`DURATION` after which a silent connection is cut and the request repeated, and a credential helper stopped")
	a.mapRegistryErrors()
	return r
}

// Options are what the flags and the environment say. Call it when flags have
// been parsed.
func (r *RegistryFlags) Options() (ociregistry.Options, error) {
	if (r.clientCert == "") != (r.clientKey == "") {
		return ociregistry.Options{}, Usagef("--client-cert and --client-key go together")
	}
	if r.stall <= 0 {
		return ociregistry.Options{}, Hint(Usagef("--stall-timeout %s: it must be more than 0", r.stall), "leave it out for 30 seconds")
	}
	plain, err := r.plainHosts()
	if err != nil {
		return ociregistry.Options{}, err
	}
	if err := r.checkFiles(); err != nil {
		return ociregistry.Options{}, err
	}
	store, err := r.store(false)
	if err != nil {
		return ociregistry.Options{}, err
	}
	opts := ociregistry.Options{
		Logger: r.app.Logger(), PlainHTTP: plain, TLSHosts: store.TLSHosts(), CertificateFolders: r.certificateFolders(),
		CredentialStore: store, MaxRequests: maxRequests, MaxBytes: maxBytes, StallTimeout: r.stall, FirstWait: r.app.RetryWait,
	}
	if r.caFile != "" || r.clientCert != "" {
		opts.TLS = map[string]ociregistry.TLSFiles{"": {CAFile: r.caFile, CertFile: r.clientCert, KeyFile: r.clientKey}}
	}
	return opts, nil
}

// plainHosts are the registries of --insecure-plain-http.
func (r *RegistryFlags) plainHosts() ([]string, error) {
	var hosts []string
	for _, text := range r.plainHTTP {
		host, mustTLS, err := ociregistry.ParseServer(text)
		if err != nil || mustTLS {
			return nil, Hint(Usagef("--insecure-plain-http %q names no registry", text), "write it as HOST or HOST:PORT, as in the reference")
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

// authFile is podman's variable for a file with credentials.
const authFile = "REGISTRY_AUTH_FILE"

// checkFiles looks whether the file with credentials that is asked for is there,
// unless the command is to write it: without it, what is private would look as if it
// were not there.
func (r *RegistryFlags) checkFiles() error {
	if r.writes {
		return nil
	}
	if r.configFile != "" {
		if _, err := os.Stat(r.configFile); errors.Is(err, fs.ErrNotExist) {
			return Hint(Usagef("--registry-config %s: there is no such file", r.configFile), "fleeting-plugin login REGISTRY --registry-config "+r.configFile)
		}
		return nil
	}
	if name := r.app.Env(authFile); name != "" {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			r.app.Warnf("there are no credentials in %s, which %s names: there is no such file", name, authFile)
		}
	}
	return nil
}

// store opens the places of credentials. With --registry-config that file is the
// only one, but for the registry of the CI job. A container may have no home
// folder; what is public can still be read.
func (r *RegistryFlags) store(allowPlainText bool) (*ociregistry.CredentialStore, error) {
	sources := ociregistry.CredentialSources{
		Files: r.CredentialFiles(), Last: r.app.jobCredential, AllowPlainText: allowPlainText, HelperTimeout: r.stall,
	}
	if r.configFile == "" {
		sources.Contents = r.app.credentialContents()
	}
	return ociregistry.OpenCredentialStore(sources)
}

// Client returns a client for what is not about one repository.
func (r *RegistryFlags) Client() (*ociregistry.Client, error) {
	opts, err := r.Options()
	if err != nil {
		return nil, err
	}
	return ociregistry.NewClient(opts)
}

// certificateFolders are those of --certs-dir, else those of podman and docker.
func (r *RegistryFlags) certificateFolders() []string {
	if len(r.certsDirs) > 0 {
		return r.certsDirs
	}
	folders, err := places.Of(r.app.LookupEnv).Certificates()
	if err != nil {
		r.app.Warnf("certificates there are not used: %v", err)
	}
	return folders
}

// Credentials opens the files with registry credentials. The first is the one
// that is written to: --registry-config, else Docker's. allowPlainText lets a
// password be stored without a credential helper.
func (r *RegistryFlags) Credentials(allowPlainText bool) (*ociregistry.CredentialStore, error) {
	r.writes = true
	files := r.CredentialFiles()
	if len(files) == 0 {
		return nil, Usagef("no place for registry credentials: set HOME or DOCKER_CONFIG, or give --registry-config")
	}
	return ociregistry.OpenCredentialStore(ociregistry.CredentialSources{Files: files, AllowPlainText: allowPlainText, HelperTimeout: r.stall})
}

// CredentialFiles lists the places of credentials, whether or not there is a
// file.
func (r *RegistryFlags) CredentialFiles() []string {
	if r.configFile != "" {
		return []string{r.configFile}
	}
	return places.Of(r.app.LookupEnv).Credentials()
}

func (a *App) mapRegistryErrors() {
	if len(a.fallback) > 0 {
		return
	}
	a.fallback = []errorMapping{
		{ociregistry.ErrConfig, Usage, "mend the file or the variable; docker login and fleeting-plugin login write it"},
		{ociregistry.ErrTLSFiles, Usage, "name files in PEM form with --ca-file, --client-cert and --client-key"},
		{ociregistry.ErrDigestMismatch, Refused, "the bytes are not those that were published: ask the registry's administrator, and fetch from another mirror"},
		{ociregistry.ErrUnauthorized, Network, "fleeting-plugin login REGISTRY"},
		{ociregistry.ErrForbidden, Network, "log in as a user who may do this: fleeting-plugin login REGISTRY"},
		{ociregistry.ErrRateLimited, Network, "wait, or log in: most registries allow more to known users"},
		{ociregistry.ErrCertificate, Network, "if the registry has an authority of its own, name its certificate: --ca-file authority.pem"},
		{ociregistry.ErrPlainHTTP, Network, "if you trust the network in between: --insecure-plain-http HOST[:PORT]"},
		{ociregistry.ErrPage, Network, "that is no registry: check the host in the reference, and whether the network or a proxy wants a login first"},
		{ociregistry.ErrStorage, Network, "run the same command again: the registry makes a new address each time; if that does not help, tell its administrator"},
		{ociregistry.ErrUnavailable, Network, "check the registry's address, the network and the proxy settings, and try again"},
		{ociregistry.ErrImmutable, Network, "the registry has immutable tags: publish under a new version"},
		{ociregistry.ErrUnsupported, Network, "the registry does not offer this call: if it is a mirror or a cache, name the registry behind it"},
		{ociregistry.ErrTooLarge, Refused, "tell the publisher, and whoever may push there"},
		{ociregistry.ErrHelper, Network, "run the credential helper by hand to see what it wants"},
		{ociregistry.ErrAnswer, Network, "the registry, or something between, does not follow the distribution specification: tell its administrator"},
		{ociregistry.ErrNotFound, NotFound, "check the name and the version: fleeting-plugin resolve REPOSITORY"},
	}
}
