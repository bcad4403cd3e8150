# What a release is made of, then its steps, in order. .github/workflows/release.yml
# says who may take the steps, and `make release-rehearsal` runs that file.
DIST      := $(GO) run ./internal/dist/cmd/dist
FLEETING  := $(GO) run ./cmd/fleeting-plugin
# Says which target comes first if a file is not there.
after = compgen -G '$(1)' >/dev/null || { echo "make $@: there is no $(1): make $(2)" >&2; exit 1; }

.PHONY: dist ldflags share packages image repro
dist: ## build the executables of a release into build/dist (VERSION, PLATFORMS)
	$(DIST) build -o $(BUILD)/dist -version "$$VERSION" -revision "$$REVISION" -platforms '$(PLATFORMS)'

ldflags: ## print the -ldflags of `make dist`, for --ldflags of fleeting-plugin (VERSION)
	@echo "$(LDFLAGS)"

SHARE := $(BUILD)/share/fleeting-plugin
share: ## write manual pages and completions for packages (build/share)
	@mkdir -p $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/vendor-completions $(SHARE)/fish/vendor_completions.d \
		$(SHARE)-openstack/man/man1
	@$(FLEETING) man | gzip -9n >$(SHARE)/man/man1/fleeting-plugin.1.gz
	@$(GO) run ./cmd/fleeting-plugin-openstack man | gzip -9n >$(SHARE)-openstack/man/man1/fleeting-plugin-openstack.1.gz
	@$(FLEETING) completion bash >$(SHARE)/bash-completion/completions/fleeting-plugin
	@$(FLEETING) completion zsh >$(SHARE)/zsh/vendor-completions/_fleeting-plugin
	@$(FLEETING) completion fish >$(SHARE)/fish/vendor_completions.d/fleeting-plugin.fish

packages: ## make .deb and .rpm packages of what `make dist` built for Linux (build/packages)
	@$(call after,$(BUILD)/dist/bin/fleeting-plugin-linux-*,dist)
	@$(MAKE) --no-print-directory share
	@rm -rf $(BUILD)/packages
	@for arch in amd64 arm64; do \
		bin=$(CURDIR)/$(BUILD)/dist/bin; \
		test -e $$bin/fleeting-plugin-linux-$$arch || { echo "none for linux/$$arch, which is not built"; continue; }; \
		$(GO) run -C internal/dist/packages . -o $(CURDIR)/$(BUILD)/packages -version "$$VERSION" -arch $$arch -notices $(CURDIR)/$(BUILD)/dist/notices -share $(CURDIR)/$(BUILD)/share \
			fleeting-plugin=$$bin/fleeting-plugin-linux-$$arch fleeting-plugin-openstack=$$bin/fleeting-plugin-openstack-linux-$$arch; \
	done
	@ls $(BUILD)/packages

image: ## make the container image of fleeting-plugin of what `make dist` built for Linux, as a layout (build/image)
	@$(call after,$(BUILD)/dist/bin/fleeting-plugin-linux-*,dist)
	$(GO) run ./internal/toolimage/cmd/toolimage -o $(BUILD)/image -notices $(BUILD)/dist/notices -version "$$VERSION" -revision "$$REVISION" \
		$(foreach arch,amd64 arm64,$(patsubst %,linux/$(arch)=%,$(wildcard $(BUILD)/dist/bin/fleeting-plugin-linux-$(arch))))

repro: ## build twice, in different folders with empty caches, and compare bit for bit
	$(DIST) repro -version "$$VERSION" -revision "$$REVISION" -platforms '$(PLATFORMS)'


RELEASE_REF   ?= ghcr.io/radome-io/fleeting-plugin-openstack:$(VERSION)
IMAGE_REF     ?= ghcr.io/radome-io/fleeting-plugin:$(VERSION)
RELEASE_FLAGS ?= --keyless
CHECK_FLAGS   ?=
# The SSH keys that may sign the tag of a release, as ssh-keygen's ALLOWED SIGNERS.
RELEASE_SIGNERS ?= $(CURDIR)/.github/release-signers
INSTALL_FLAGS ?=

.PHONY: release-tag release-references release-ready release-files release-look release-compare release-publish release-image release-attest \
	release-check release-check-files release-rebuild release-promote release-show
release-%: override export RELEASE_REF := $(RELEASE_REF)
release-%: override export IMAGE_REF := $(IMAGE_REF)
# Logs in for one recipe, and out again however it ends.
login = if [[ -n "$${REGISTRY_USER:-}" ]]; then \
		trap '$(FLEETING) logout "$${RELEASE_REF%%/*}"' EXIT; \
		$(FLEETING) login "$${RELEASE_REF%%/*}" --username "$$REGISTRY_USER" --password-stdin <<<"$$REGISTRY_PASSWORD"; fi

release-tag: ## verify that the tag of VERSION is signed by a maintainer (RELEASE_SIGNERS)
	@test -s "$(RELEASE_SIGNERS)" || { echo "make release-tag: $(RELEASE_SIGNERS) has no key: add a line for each maintainer (CONTRIBUTING.md, Set up releases)" >&2; exit 1; }
	@[[ "$$(git cat-file -t "refs/tags/v$$VERSION")" == tag ]] || { echo "make release-tag: v$$VERSION is no annotated tag: git tag --sign" >&2; exit 1; }
	git -c gpg.format=ssh -c gpg.ssh.allowedSignersFile="$(RELEASE_SIGNERS)" verify-tag "v$$VERSION"

release-references: ## print what a release is published as
	@printf '%s\n' "$$RELEASE_REF" "$$IMAGE_REF"

release-ready: ## release: see that CHANGELOG.md and the docs name VERSION
	$(GO) test -count=1 -run '^TestDocsNameTheRelease$$' ./internal/test/docstest -release "$$VERSION"

# What the release shows beside the registry, and what vouches for it.
SHOWN     := $(BUILD)/dist/bin
FOR_SHOWN := $(SHOWN)/provenance.sigstore.json

release-files: packages ## release: put SBOMs, packages, archives and checksums beside the executables of `make dist`
	@$(GOBUILD) -o $(BUILD)/bin/ ./cmd/fleeting-plugin
	@rm -f $(SHOWN)/*.json $(SHOWN)/*.deb $(SHOWN)/*.rpm $(SHOWN)/*.zip $(SHOWN)/*.rb
	@for executable in $(SHOWN)/fleeting-plugin-*; do \
		$(BUILD)/bin/fleeting-plugin sbom "$$executable" --release "$$VERSION" --licenses MIT --format spdx >"$$executable.spdx.json"; \
		$(BUILD)/bin/fleeting-plugin sbom "$$executable" --release "$$VERSION" --licenses MIT --format cyclonedx >"$$executable.cdx.json"; \
	done
	@cp $(BUILD)/packages/* $(SHOWN)/
	$(DIST) archives -version "$$VERSION" -license LICENSE $(SHOWN)
	@if ! command -v ruby >/dev/null; then echo "ruby is not installed: the Homebrew formula is not read" >&2; \
	elif compgen -G '$(SHOWN)/*.rb' >/dev/null; then ruby -c $(SHOWN)/*.rb; fi
	$(DIST) sums $(SHOWN)
	@ls $(SHOWN)

# What the publishing job does not start is started here, where there is no token
# that it could read.
SAID := --title fleeting-plugin-openstack --licenses MIT \
	--description "A fleeting plugin that runs GitLab CI jobs on OpenStack servers"
release-look: ## release: package build/dist as it will be published, and start what runs here to compare its version
	@$(call after,$(BUILD)/dist/plugin/*,dist)
	$(FLEETING) package $(BUILD)/dist/plugin --version "$$VERSION" --layout $(BUILD)/layout $(SAID)

release-compare: ## release: compare two builds that were made on different machines
	$(DIST) compare downloaded/dist downloaded/dist-again
	@mkdir -p $(BUILD)
	@rm -rf $(BUILD)/dist && cp -R downloaded/dist $(BUILD)/dist

release-publish: ## release: publish, sign and attest build/dist as RELEASE_REF, and move no alias yet
	@$(call after,$(BUILD)/dist/plugin/*,release-compare)
	@find $(BUILD)/dist/plugin -type f \( -name plugin -o -name plugin.exe \) -exec chmod 0755 {} +
	@$(login); set -x; \
	$(FLEETING) release $(BUILD)/dist/plugin "$$RELEASE_REF" --no-aliases $(RELEASE_FLAGS) --ldflags "$(LDFLAGS)" \
		--provenance-bundle $(SHOWN)/artifact.sigstore.json $(SAID)

release-image: image ## release: push, sign and attest the image of fleeting-plugin as IMAGE_REF, and move no alias yet
	@$(login); set -x; \
	$(FLEETING) push $(BUILD)/image "$$IMAGE_REF" --no-aliases; \
	$(FLEETING) sign "$$IMAGE_REF" $(RELEASE_FLAGS); \
	$(FLEETING) attest "$$IMAGE_REF" $(RELEASE_FLAGS) --ldflags "$(LDFLAGS)"

release-attest: ## release: attest everything that is shown, in one bundle
	@$(call after,$(SHOWN)/*,release-compare)
	$(FLEETING) attest-files $(SHOWN) --bundle $(FOR_SHOWN) $(RELEASE_FLAGS) --ldflags "$(LDFLAGS)"

release-check: ## release: install RELEASE_REF as a user would, and verify what was installed
	$(FLEETING) install --dir $(BUILD)/installed $(CHECK_FLAGS) $(INSTALL_FLAGS) "$$RELEASE_REF"
	$(FLEETING) verify --installed --dir $(BUILD)/installed

release-check-files: ## release: check everything that is shown as a user would
	@$(call after,$(FOR_SHOWN),release-attest)
	$(FLEETING) verify-files $(SHOWN) --bundle $(FOR_SHOWN) --as "$$RELEASE_REF" $(CHECK_FLAGS)
	cd $(SHOWN) && sha256sum --check --quiet SHA256SUMS

release-rebuild: ## release: build RELEASE_REF again from the commit that its provenance names
	$(FLEETING) rebuild $(CHECK_FLAGS) "$$RELEASE_REF"

release-promote: ## release: move the aliases of what was checked: 1.2, 1 and latest
	@$(login); set -x; \
	$(FLEETING) promote "$$RELEASE_REF" $(CHECK_FLAGS); \
	$(FLEETING) promote "$$IMAGE_REF" $(CHECK_FLAGS)

release-show: ## release: show it on GitHub, with everything that was attested
	@$(call need,gh,see https://cli.github.com)
	@$(call after,$(FOR_SHOWN),release-attest)
	.ci/show "v$$VERSION" CHANGELOG.md $(SHOWN)
