"""Places that other programs run or obey later, parts of the system, and devices.

All in small letters, with `*` for any part of one name.
"""

from __future__ import annotations

from hermes.policy.places.listed import listed

# In a home: what shells and logins read, which often holds secrets too.
SHELL_FILES = listed(
    """
    .bashrc | .bash_profile | .bash_login | .bash_logout | .bash_aliases | .profile | .zshrc
    .zshenv | .zprofile | .zlogin | .zlogout | .kshrc | .cshrc | .tcshrc | .login | .inputrc
    .pam_environment
    """
)
# In a home: files, and folders with all that is in them.
STARTED_IN_HOME = listed(
    """
    .xinitrc | .xprofile | .xsession | .xsessionrc | .vimrc | .vim | .exrc | .emacs | .emacs.d
    .gitconfig | .config/git | .config/fish | .config/nvim | .config/emacs | .config/systemd
    .config/autostart | .config/environment.d | .config/plasma-workspace | .config/hypr
    .config/i3 | .config/sway | .config/nushell | .config/direnv | .config/code/user
    .config/cursor/user | .config/zed | .config/mise | .local/share/systemd | .local/bin | bin
    .tmux.conf | .config/tmux | .screenrc | .gdbinit | .lldbinit | .pythonrc | .pythonrc.py
    .irbrc | .rprofile | .forward | .procmailrc | .crontab | .cargo/config | .cargo/config.toml
    .cargo/env | .gem/gemrc | .gemrc | .pip | .config/pip | .hgrc | .mcp.json | .claude | .codex
    .cursor | .gemini | .vscode | .windsurf | .aider.conf.yml | .continue
    .ipython/profile_default/startup | .jupyter | .config/kitty | .config/alacritty
    .config/wezterm | library/launchagents | library/application support/code/user
    library/application scripts | library/preferences
    appdata/roaming/microsoft/windows/start menu/programs/startup | documents/windowspowershell
    documents/powershell
    """
)
# Below any folder, also one that is not there yet.
STARTED_ANYWHERE = listed(
    """
    .git/hooks | .git/config | .git/config.worktree | .git/info/attributes
    .husky | .githooks | .lefthook | .git/modules/*/hooks | .git/modules/*/config | .hg/hgrc
    .svn/hooks | .envrc
    .vscode/tasks.json | .vscode/settings.json | .vscode/launch.json | .vscode/extensions.json
    .vscode/mcp.json | .idea/runconfigurations | .idea/workspace.xml
    .idea/externaldependencies.xml | .run | .devcontainer | .devcontainer.json | .zed/tasks.json
    .zed/settings.json | .fleet/run.json | .nvim.lua | .nvimrc | .exrc | .vimrc | .lvimrc
    .dir-locals.el | .gdbinit | .lldbinit | .claude/settings.json | .claude/settings.local.json
    .claude/hooks | .claude/commands | .claude/agents | .claude/skills | .claude/plugins
    .mcp.json | .cursor/mcp.json | .cursor/hooks.json | .cursor/rules | .cursorrules | .windsurf
    .windsurfrules | .codex | .gemini/settings.json | .gemini/extensions | .kiro/hooks
    .kiro/settings | .roo/mcp.json | .clinerules | .amazonq/mcp.json | .aider.conf.yml
    .continue | .goosehints | .opencode | opencode.json | .crush.json | .hermes/config.yaml
    .hermes/plugins | .hermes/hooks | .npmrc | .yarnrc | .yarnrc.yml | .pnpmfile.cjs | pip.conf
    .cargo/config | .cargo/config.toml | .mise.toml | mise.toml | .miserc.toml | .bashrc
    .bash_profile | .zshrc | .zshenv | .profile | sitecustomize.py | usercustomize.py
    site-packages/*.pth | dist-packages/*.pth | authorized_keys | authorized_keys2
    """
)
# Below any folder: what agents are told when they start there. Changed in the course of work, but
# not because a stranger's text says so.
TOLD_TO_AGENTS = listed(
    """
    agents.md | agents.override.md | claude.md | claude.local.md | gemini.md | hermes.md
    .hermes.md | soul.md | skill.md | copilot-instructions.md | .github/instructions
    .github/prompts | .github/workflows | .claude/rules | .hermes | .agents | .cursor
    .continue | .roo | .kiro | .junie | .augment
    """
)
# Run at certain times or at the start of the machine.
STARTED_BY_SYSTEM = listed(
    """
    /etc/cron* | /etc/anacrontab | /var/spool/cron | /var/spool/at | /etc/systemd
    /usr/lib/systemd | /lib/systemd | /run/systemd | /etc/init* | /etc/rc* | /etc/profile*
    /etc/bash.bashrc | /etc/bashrc | /etc/zsh* | /etc/environment | /etc/ld.so* | /etc/pam.d
    /etc/sudoers* | /etc/xdg/autostart | /etc/udev | /etc/network | /etc/ssh
    /etc/update-motd.d | /etc/apt/apt.conf.d | /etc/logrotate.d | /library/launchagents
    /library/launchdaemons | /system/library/launch*
    /programdata/microsoft/windows/start menu/programs/startup
    """
)
SYSTEM_FOLDERS = listed(
    """
    /etc | /private/etc | /boot | /efi | /usr | /bin | /sbin | /lib | /lib32 | /lib64 | /libx32
    /sys | /proc | /dev | /run | /var/run | /var/lib | /var/spool | /var/log | /var/db | /snap
    /nix | /system | /library | /windows | /programdata | /program files | /program files (x86)
    """
)
# Deleting one of these, or all that is in it, is the end of the machine or of the home; a workspace
# that is one of them does not hold the others.
ROOTS = frozenset(
    """
    / /bin /boot /dev /etc /home /lib /lib32 /lib64 /media /mnt /opt /proc /root /run /sbin
    /srv /sys /usr /usr/bin /usr/lib /usr/local /usr/sbin /usr/share /var /var/lib
    /Applications /Library /System /Users
    """.split()
)
SCRATCH = listed(
    """
    /tmp | /var/tmp | /private/tmp | /dev/shm | /var/folders | /private/var/folders
    """
)
# Whoever reaches one of these can do what the service behind it can.
SOCKETS = listed(
    """
    /var/run/docker.sock | /run/docker.sock | /run/containerd | /var/run/containerd
    /run/podman | /run/user/*/podman | /run/user/*/docker.sock | /run/user/*/bus
    /run/user/*/gnupg | /run/dbus | /var/run/dbus | /run/crio | /run/libvirt | /var/run/libvirt
    /run/snapd.socket | /run/systemd/private | /tmp/.x11-unix | /tmp/ssh-*
    /var/lib/lxd/unix.socket | /run/mysqld/mysqld.sock | /var/run/postgresql
    """
)
# In /proc: what shows other programs' memory, files or secrets, and what the kernel obeys.
PROCESS_SECRETS = frozenset(
    listed(
        """
        auxv | clear_refs | cmdline | cwd | environ | exe | fd | fdinfo | map_files | maps | mem
        ns | numa_maps | pagemap | personality | root | smaps | smaps_rollup | stack | syscall
        """
    )
)
KERNEL_SECRETS = frozenset(
    listed(
        """
        kallsyms | kcore | key-users | keys | kmem | kmsg | kpagecount | kpageflags
        """
    )
)
# Homes of nobody, in which there is something for all.
SHARED_HOMES = frozenset({"/home/linuxbrew", "/home/shared", "/users/shared", "/users/public"})
WINDOWS_DEVICES = frozenset(
    listed(
        """
        aux | clock$ | com1 | com2 | com3 | com4 | com5 | com6 | com7 | com8 | com9 | con
        conin$ | conout$ | lpt1 | lpt2 | lpt3 | lpt4 | lpt5 | lpt6 | lpt7 | lpt8 | lpt9 | nul
        prn
        """
    )
)
# Of our own home, what tools may read back.
READABLE_STATE = listed(
    """
    sessions | skills | cache/images | cache/audio | cache/video | cache/documents
    cache/screenshots | cache/web
    """
)
SECRET_STATE = listed(
    """
    skills/.hub
    """
)
