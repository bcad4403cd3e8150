package cli

import (
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
		"registry `HOST[:PORT]` to speak to without TLS; loopback addresses always are (repeatable)")
	a.mapRegistryErrors()
	return r
}

// Options are what the flags and the environment say. Call it when flags have
// been parsed.
func (r *RegistryFlags) Options() (ociregistry.Options, error) {
	if (r.clientCert == "") != (r.clientKey == "") {
		return ociregistry.Options{}, Usagef("--client-cert and --client-key go together")
	}
	store, err := r.store(false)
	if err != nil {
		return ociregistry.Options{}, err
	}
	opts := ociregistry.Options{
		Logger: r.app.Logger(), PlainHTTP: r.plainHTTP, TLSHosts: store.TLSHosts(), CertificateFolders: r.certificateFolders(),
		CredentialStore: store, MaxRequests: maxRequests, MaxBytes: maxBytes,
	}
	if r.caFile != "" || r.clientCert != "" {
		opts.TLS = map[string]ociregistry.TLSFiles{"": {CAFile: r.caFile, CertFile: r.clientCert, KeyFile: r.clientKey}}
	}
	return opts, nil
}

// store opens the places of credentials. With --registry-config that file is the
// only one, but for the registry of the CI job. A container may have no home
// folder; what is public can still be read.
func (r *RegistryFlags) store(allowPlainText bool) (*ociregistry.CredentialStore, error) {
	sources := ociregistry.CredentialSources{Files: r.CredentialFiles(), Last: r.app.jobCredential, AllowPlainText: allowPlainText}
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
	files := r.CredentialFiles()
	if len(files) == 0 {
		return nil, Usagef("no place for registry credentials: set HOME or DOCKER_CONFIG, or give --registry-config")
	}
	return ociregistry.OpenCredentialStore(ociregistry.CredentialSources{Files: files, AllowPlainText: allowPlainText})
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
		{ociregistry.ErrHelper, Network, "run the credential helper by hand to see what it wants"},
		{ociregistry.ErrAnswer, Network, "the registry, or something between, does not follow the distribution specification: tell its administrator"},
		{ociregistry.ErrNotFound, NotFound, "check the name and the version: fleeting-plugin resolve REPOSITORY"},
	}
}
