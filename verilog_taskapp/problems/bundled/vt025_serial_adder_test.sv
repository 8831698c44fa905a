// Bench of vt025_serial_adder: bit-serial adder.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_sum;
    int errortime_sum;
    int errors_carry;
    int errortime_carry;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic reset;
  logic valid;
  logic first;
  logic a;
  logic b;
  wire  sum_ref;
  wire  sum_dut;
  wire  carry_ref;
  wire  carry_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .valid(valid),
    .first(first),
    .a(a),
    .b(b),
    .sum(sum_ref),
    .carry(carry_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .valid(valid),
    .first(first),
    .a(a),
    .b(b),
    .sum(sum_dut),
    .carry(carry_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  open_sum = sum_ref ^ sum_ref;
  wire  match_sum = (sum_dut ^ open_sum) === (sum_ref ^ open_sum);
  wire  open_carry = carry_ref ^ carry_ref;
  wire  match_carry = (carry_dut ^ open_carry) === (carry_ref ^ open_carry);
  wire  tb_match = match_sum && match_carry;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_sum) begin
      if (stats1.errors_sum == 0) stats1.errortime_sum = $time;
      stats1.errors_sum = stats1.errors_sum + 1;
    end
    if (!match_carry) begin
      if (stats1.errors_carry == 0) stats1.errortime_carry = $time;
      stats1.errors_carry = stats1.errors_carry + 1;
    end
  end

  integer i;
  integer length;
  initial begin
    reset <= 1'b1;
    valid <= 1'b1;
    first <= 1'b0;
    a <= 1'b1;
    b <= 1'b1;
    repeat (2) @(posedge clk);
    reset <= 1'b0;
    // Without a first pair after reset the carry is 0; then every pair with either carry.
    for (i = 0; i < 32; i = i + 1) begin
      {a, b} <= i[1:0];
      first <= i[4] & i[2];
      valid <= 1'b1;
      @(posedge clk);
    end
    // Words of random length, with pauses, one directly after the other.
    repeat (60) begin
      length = 1 + ($urandom % 8);
      for (i = 0; i < length; i = i + 1) begin
        valid <= 1'b1;
        first <= (i == 0);
        a <= $random;
        b <= $random;
        @(posedge clk);
        if (($random & 3) == 0) begin
          valid <= 1'b0;
          first <= $random;
          a <= $random;
          b <= $random;
          @(posedge clk);
        end
      end
      reset <= ($urandom & 7) == 0;
      if (($urandom & 1) == 0) @(posedge clk);
      reset <= 1'b0;
    end
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_sum != 0)
      $display("Hint: Output 'sum' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_sum, stats1.errortime_sum);
    else
      $display("Hint: Output 'sum' has no mismatches.");
    if (stats1.errors_carry != 0)
      $display("Hint: Output 'carry' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_carry, stats1.errortime_carry);
    else
      $display("Hint: Output 'carry' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
