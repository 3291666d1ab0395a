/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the supervisor to write a file that is none of the command. */
static char request[] = "r\0\0\0\0cL\0\0\0HOME/new";
static long attack(void)
{
	static char reply[300];
	long length = sizeof("HOME/new") - 1;

	request[1] = length + 5;
	request[6] = length;
	sys(1, 3, (long)request, length + 10, 0);
	sys(0, 0, (long)reply, 300, 0);
	return reply[0] ? -1 : 0;
}
