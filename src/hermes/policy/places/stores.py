"""Where credentials lie: folders and files of a home, of the system, and names that tell anywhere.

All in small letters: file systems that do not tell cases apart would open `.SSH` too. A `*` stands
for any part of one name.
"""

from __future__ import annotations

from hermes.policy.places.listed import listed

# What they are: folders of a home, and all that is in them.
HOME_FOLDERS: dict[str, tuple[str, ...]] = {
    "SSH keys": listed(
        """
        .ssh | .putty | .config/ssh | .ollama/id_*
        """
    ),
    "PGP and age keys": listed(
        """
        .gnupg | .age | .config/age | .config/sops | .config/passage
        """
    ),
    "cloud credentials": listed(
        """
        .aws | .azure | .config/gcloud | .gcloud | .oci | .bluemix | .aliyun | .tccli
        .config/doctl | .config/hcloud | .config/scw | .config/linode-cli | .linode-cli
        .config/exoscale | .config/openstack | .config/rclone | .pulumi | .terraform.d
        .snowflake | .snowsql | .config/snowflake | .fly | .railway | .supabase | .netlify
        .config/netlify | .wrangler/config | .config/.wrangler | .local/share/com.vercel.cli
        .vercel | .config/heroku | .local/share/heroku
        """
    ),
    "cluster and container credentials": listed(
        """
        .kube | .docker | .config/containers | .minikube | .rancher | .config/argocd | .argocd
        .config/helm
        """
    ),
    "code hosting credentials": listed(
        """
        .config/gh | .config/hub | .config/glab-cli | .config/tea | .config/github-copilot
        .config/git/credential
        """
    ),
    "passwords": listed(
        """
        .password-store | .local/share/keyrings | .local/share/kwalletd
        .kde/share/apps/kwallet | .config/keepassxc | .config/keepass | .config/bitwarden
        .config/bitwarden cli | .config/1password | .config/op | .op | .lastpass
        .local/share/lpass | .config/enpass | library/keychains
        library/application support/1password | library/application support/bitwarden
        library/group containers/2bua8c4s2c.com.1password
        appdata/roaming/microsoft/credentials | appdata/local/microsoft/credentials
        appdata/roaming/microsoft/protect | appdata/local/microsoft/vault
        """
    ),
    "a browser's profile": listed(
        """
        .mozilla | .config/google-chrome* | .config/chromium* | .config/bravesoftware
        .config/microsoft-edge* | .config/vivaldi* | .config/opera* | .librewolf | .waterfox
        .zen | snap/firefox | snap/chromium | .var/app/org.mozilla.firefox
        .var/app/com.google.chrome | .var/app/com.brave.browser
        library/application support/google/chrome | library/application support/firefox
        library/application support/bravesoftware | library/application support/microsoft edge
        library/application support/arc | library/safari | library/cookies
        library/containers/com.apple.safari | appdata/local/google/chrome/user data
        appdata/local/microsoft/edge/user data | appdata/local/bravesoftware
        appdata/roaming/mozilla
        """
    ),
    "mail and messages": listed(
        """
        .thunderbird | .config/evolution | .local/share/evolution | .config/signal
        .config/slack | .config/discord | .config/element | .local/share/telegramdesktop
        .purple | library/mail | library/messages | library/application support/signal
        library/application support/slack | appdata/roaming/telegram desktop
        appdata/roaming/discord | appdata/roaming/slack
        """
    ),
    "a wallet": listed(
        """
        .bitcoin | .litecoin | .dogecoin | .electrum | .ethereum | .monero | .bitmonero
        .config/solana | .config/exodus | .config/ledger live | .config/atomic
        .foundry/keystores | .brownie/accounts | library/application support/bitcoin
        library/application support/exodus | appdata/roaming/bitcoin | appdata/roaming/exodus
        """
    ),
    "tokens of other programs": listed(
        """
        .config/op | .config/stripe | .config/ngrok | .ngrok2 | .ngrok | .config/configstore
        .twilio-cli | .config/twilio-cli | .huggingface | .kaggle | .chef | .config/remmina
        .config/filezilla | .vnc | .local/share/dbeaverdata | .influxdbv2 | .mc | .config/goose
        .local/share/opencode | .config/anthropic | .config/openai | .openai | .anthropic
        .gemini | .cdsapirc | .local/share/jupyter/runtime
        """
    ),
}
# What they are: files of a home.
HOME_FILES: dict[str, tuple[str, ...]] = {
    "login data": listed(
        """
        .netrc | _netrc | .pgpass | .my.cnf | .mylogin.cnf | .msmtprc | .mbsyncrc | .fetchmailrc
        .authinfo* | .muttrc | .mutt/muttrc | .config/mutt/muttrc | .irssi/config
        .smbcredentials | .passwd-s3fs | .xauthority | .iceauthority | .curlrc | .wgetrc
        .vault-token | .nomad-token | .consul-token | .vault_pass* | .config/pulse/cookie
        appdata/roaming/postgresql/pgpass.conf
        """
    ),
    "tokens of package registries": listed(
        """
        .npmrc | .yarnrc | .yarnrc.yml | .pypirc | .cargo/credentials | .cargo/credentials.toml
        .gem/credentials | .local/share/gem/credentials | .bundle/config | .m2/settings.xml
        .m2/settings-security.xml | .gradle/gradle.properties | .nuget/nuget/nuget.config
        .composer/auth.json | .config/composer/auth.json | .config/pypoetry/auth.toml
        .hex/hex.config | .pip/pip.conf | .config/pip/pip.conf | .conda/.condarc | .condarc
        """
    ),
    "tokens of other programs": listed(
        """
        .s3cfg | .boto | .databrickscfg | .terraformrc | .sentryclirc | .git-credentials
        .config/git/credentials | .claude.json | .claude/.credentials.json | .codex/auth.json
        .gemini/oauth_creds.json | .continue/config.json | .cache/huggingface/token
        .cache/huggingface/stored_tokens | .circleci/cli.yml | .travis/config.yml
        .config/wandb/settings | .wandb/settings | .cloudflared/*.json | .cloudflared/cert.pem
        .jupyter/jupyter_server_config.json | .config/filezilla/sitemanager.xml
        """
    ),
    "the history of a shell": listed(
        """
        .bash_history | .zsh_history | .zhistory | .histfile | .history | .sh_history
        .local/share/fish/fish_history | .local/share/atuin/history.db | .python_history
        .psql_history | .mysql_history | .sqlite_history | .rediscli_history
        .node_repl_history | .irb_history | .dbshell | .mongosh/mongosh_repl_history
        .ipython/profile_default/history.sqlite
        appdata/roaming/microsoft/windows/powershell/psreadline/consolehost_history.txt
        """
    ),
}
# Stores so well known that they are recognised below any folder: a backup, a mount, a project.
ANYWHERE: dict[str, tuple[str, ...]] = {
    "SSH keys": listed(
        """
        .ssh
        """
    ),
    "PGP and age keys": listed(
        """
        .gnupg
        """
    ),
    "cloud credentials": listed(
        """
        .aws | .azure | gcloud/credentials.db | gcloud/access_tokens.db
        """
    ),
    "cluster and container credentials": listed(
        """
        .kube/config | .docker/config.json
        """
    ),
    "passwords": listed(
        """
        .password-store | keychains/login.keychain-db
        """
    ),
    "a browser's profile": listed(
        """
        login data | login data for account | logins.json | key4.db | key3.db | cookies.sqlite
        default/cookies | network/cookies | signons.sqlite | web data
        """
    ),
    "login data": listed(
        """
        .netrc | .pgpass | .git-credentials | .pypirc | .htpasswd | .vault-token
        """
    ),
    "Windows credentials": listed(
        """
        system32/config/sam | system32/config/system | system32/config/security
        windows/ntds/ntds.dit | repair/sam | panther/unattend.xml
        """
    ),
}
# Names that tell what a file holds, wherever it lies.
NAMES: dict[str, tuple[str, ...]] = {
    "a private key": listed(
        """
        id_rsa* | id_dsa* | id_ecdsa* | id_ed25519* | *_rsa | *_ed25519 | *_ecdsa | *.ppk
        *.p12 | *.pfx | *.p8 | *.jks | *.keystore | *.keytab | *.agekey | privkey*.pem
        *private*.pem | *private*key* | *-key.pem | *_key.pem | key.pem | ssh_host_*_key
        secring.gpg | *secret*.asc | *.ovpn | *.key
        """
    ),
    "passwords": listed(
        """
        *.kdbx | *.kdb | *.agilekeychain | *.opvault | *.psafe3 | passwords.txt | password.txt
        passwords.csv | passwords.json | *.keychain | *.keychain-db | vault_pass* | shadow.bak
        """
    ),
    "a service's credentials": listed(
        """
        service-account*.json | service_account*.json | serviceaccount*.json
        *-service-account*.json | *_service_account*.json | *firebase-adminsdk*.json
        application_default_credentials.json | google-credentials*.json | gcp-key*.json
        client_secret*.json | credentials.json | credentials.csv | accesskeys.csv
        *_accesskeys.csv | rootkey.csv | token.json | token.pickle | secrets.json | secrets.yml
        secrets.yaml | secrets.toml | secrets.env | secrets.ini | secret.json | secret.env
        .secrets | .secret | .token | .dockercfg | .dockerconfigjson | kubeconfig | *.kubeconfig
        admin.conf.bak | terraform.tfstate* | *.tfvars | *.tfvars.json | wp-config.php
        .credentials.json
        """
    ),
    "a wallet": listed(
        """
        wallet.dat | utc--20* | *.wallet | mnemonic.txt | seedphrase*
        """
    ),
}
# Parts of a name that say: this one is public, or only an example.
HARMLESS_NAMES = listed(
    """
    *pub*.key | *.pub | *example* | *sample* | *template* | *.dist | *.md | *.rst | *.adoc
    *.html | *.py | *.ts | *.tsx | *.js | *.go | *.rs | *.rb | *.java | *.c | *.h | *.cpp | *.sh
    *.enc | *.schema.json
    """
)
ENV_EXAMPLES = listed(
    """
    example | sample | template | tmpl | dist | default | schema | vault | tpl
    """
)
# Secrets of the system: files, and folders with all that is in them.
SYSTEM = listed(
    """
    /etc/shadow* | /etc/gshadow* | /etc/master.passwd | /etc/sudoers | /etc/sudoers.d
    /etc/security/opasswd | /etc/krb5.keytab | /etc/ssl/private | /etc/pki/tls/private
    /etc/letsencrypt | /etc/wireguard | /etc/openvpn | /etc/networkmanager/system-connections
    /etc/wpa_supplicant | /etc/ppp/chap-secrets | /etc/ppp/pap-secrets | /etc/ipsec.secrets
    /etc/ipsec.d/private | /etc/kubernetes | /etc/rancher | /etc/docker/key.json
    /etc/mysql/debian.cnf | /etc/ssh/ssh_host_*_key | /etc/openldap/slapd.conf
    /var/lib/kubelet | /var/lib/cloud | /var/lib/sss/secrets | /var/lib/docker/secrets
    /run/secrets | /var/run/secrets | /run/user/*/keyring | /private/etc/master.passwd
    /private/var/db/dslocal | /tmp/krb5cc_* | /var/backups/shadow.bak | /library/keychains
    """
)
